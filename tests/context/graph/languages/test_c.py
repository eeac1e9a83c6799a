"""What is particular to C; the fixture shows the rest."""

import pytest
from context.graph.memory_project import MemoryProject

from herdr.context.graph.languages import c, cpp
from herdr.context.graph.languages.c_macros import without_macros
from herdr.context.graph.outline import Import, Outline, qualified_name
from herdr.context.graph.parse import Reader
from herdr.context.graph.resolve import Resolver, symbol_id


def outline(text: str) -> Outline:
    return Reader(c.LANGUAGE).read(text.encode())


def names(text: str) -> list[tuple[str, str]]:
    read = outline(text)
    return [(qualified_name(read, place), symbol.kind) for place, symbol in enumerate(read.symbols)]


def found(files: list[str], path: str, module: str) -> list[str]:
    return list(c.LANGUAGE.find_module(Import(module, 1, "*"), path, MemoryProject(dict.fromkeys(files, ""))))


@pytest.mark.parametrize(
    ("declaration", "name", "kind"),
    [
        ("int f(void);", "f", "function"),
        ("int *f(void);", "f", "function"),
        ("int (f)(void);", "f", "function"),
        ("void (*f(int s))(int);", "f", "function"),
        ("int (*f)(void);", "f", "variable"),
        ("int (*f[3])(int);", "f", "variable"),
        ("extern int f[];", "f", "variable"),
        ("static const int f = 1;", "f", "constant"),
        ("const char *f = 0;", "f", "variable"),
        ("char *const f = 0;", "f", "constant"),
        ("typedef int (*f)(int);", "f", "type"),
        ("int f(a, b) int a; char *b; { return 1; }", "f", "function"),
        ("UV_EXTERN size_t f(void);", "f", "function"),
        ("DWORD WINAPI f(void) { return 0; }", "f", "function"),
        ("XXH_API XXH_PURE hash_t f(void);", "f", "function"),
        ("static FORCE_INLINE U32 f(int a) { return a; }", "f", "function"),
        ("PyAPI_FUNC(PyObject *) f(void);", "f", "function"),
        ("JNIEXPORT jint JNICALL f(JNIEnv *env);", "f", "function"),
        ("static int __init f(void) { return 0; }", "f", "function"),
        ("API\nint f(void);", "f", "function"),
        ("int f(void) ATTR_FORMAT(1, 2);", "f", "function"),
        ("#if A && \\\n    (B < 2)\nint f(void);\n#endif", "f", "function"),
    ],
)
def test_what_a_declaration_declares(declaration: str, name: str, kind: str) -> None:
    assert names(declaration) == [(name, kind)]


@pytest.mark.parametrize(
    ("written", "signature"),
    [
        ("MEM_STATIC U32 f(int a);", "U32 f(int a)"),
        ("DWORD WINAPI f(void);", "DWORD f(void)"),
        ("static INLINE BOOL f(void) { return 1; }", "static BOOL f(void)"),
        ("UV_EXTERN const char *f(void);", "const char *f(void)"),
    ],
)
def test_of_words_in_capitals_the_type_stays(written: str, signature: str) -> None:
    text = outline(written).symbols[0].signature
    assert " ".join(text.split()) == signature


def test_all_names_of_one_declaration_are_there() -> None:
    read = outline("static int a, *b, c[2] = { 1, 2 }, d(void);")
    assert [(s.name, s.kind, s.signature) for s in read.symbols] == [
        ("a", "variable", "static int a"),
        ("b", "variable", "static int *b"),
        ("c", "variable", "static int c[2]"),
        ("d", "function", "static int d(void)"),
    ]
    assert not any(s.exported for s in read.symbols)


def test_locals_are_no_symbols_whatever_condition_they_stand_under() -> None:
    text = "void f(void) {\n int a = g(1);\n#ifdef X\n int b;\n#else\n int c(void);\n#endif\n}\n"
    text += "#ifdef Y\nint d;\n#endif\n"
    assert names(text) == [("f", "function"), ("d", "variable")]


def test_a_type_that_only_a_typedef_names() -> None:
    assert names("typedef struct { int x; } point;") == [("point", "struct"), ("point.x", "field")]
    assert names("typedef struct point { int x; } point;") == [("point", "struct"), ("point.x", "field")]
    assert names("typedef struct p { int x; } point;") == [
        ("p", "struct"),
        ("p.x", "field"),
        ("point", "type"),
    ]
    assert names("struct point;\nenum e;") == []


def test_macros_in_bodies_are_not_fields_and_enumerators_stay() -> None:
    text = "struct s {\n  COMMON_FIELDS\n  /* own */\n  int a;\n  LAST_FIELDS\n};\n"
    text += "struct t {\n  ONLY_FIELDS\n};\nint f(void);\n"
    assert names(text) == [("s", "struct"), ("s.a", "field"), ("t", "struct"), ("f", "function")]
    assert names("enum e {\n  RED,\n  GREEN\n};") == [
        ("e", "enum"),
        ("e.RED", "constant"),
        ("e.GREEN", "constant"),
    ]


def test_functions_between_the_braces_of_extern_c() -> None:
    text = (
        '#ifdef __cplusplus\nextern "C" {\n#endif\nint f(void);\n#ifdef __cplusplus\n}\n#endif\nint g(void);'
    )
    assert names(text) == [("f", "function"), ("g", "function")]
    assert not outline(text).broken


def test_macros_with_a_value_are_symbols_and_guards_are_not() -> None:
    text = "#define GUARD_H\n#define N 3\n"
    text += "#define MAX(a, b) \\\n  /* the larger */ \\\n  ((a) > (b) ? (a) : (b))\nint f(void);"
    assert [(s.name, s.signature) for s in outline(text).symbols] == [
        ("N", "#define N 3"),
        ("MAX", "#define MAX(a, b)"),
        ("f", "int f(void)"),
    ]


def test_macros_of_several_lines_are_over_where_they_end() -> None:
    text = "#define M(x) \\\n  do { /* a */ \\\n    b(x); /* c */ \\\n  } while (0)\nint f(void);\n"
    assert (names(text), outline(text).calls) == ([("M", "macro"), ("f", "function")], ())
    text = "#if (defined(A) && B < 26) || \\\n    defined(C)\nint f(int a) { return a; }\n#elif D\n#endif\n"
    assert (names(text), outline(text).calls) == ([("f", "function")], ())


def test_blanked_macros_keep_every_byte_in_its_place() -> None:
    source = b"/* FOO */ UV_EXTERN int\r\nf(void);\n\tOBJECT\n  int x;\n#define A \\\n /* b */ \\\n c\n"
    blank = without_macros(source)
    assert len(blank) == len(source)
    assert [n for n, byte in enumerate(blank) if byte in b"\r\n"] == [
        n for n, byte in enumerate(source) if byte in b"\r\n"
    ]
    assert all(new in (old, 32) for new, old in zip(blank, source, strict=True))


@pytest.mark.parametrize(
    "text", [b";/*", b"AB_C\n", b"FOO(", b"int x LOCK", b"/*\\\n", b"class AB ", b";\n", b" "]
)
def test_no_text_takes_long_to_blank(text: bytes) -> None:
    source = b"#define A \\\n" + text * (1_000_000 // len(text))
    assert len(without_macros(source)) == len(source)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("int f(void);", "c"),
        ("struct a { int class; };", "c"),
        ("/* a class of\n * namespace x */ int f(void);", "c"),
        ('#ifdef __cplusplus\nextern "C" {\n#endif\n#include <stdio.h>', "c"),
        ("class A;", "cpp"),
        ("class API A {\n};", "cpp"),
        ("namespace a {\n}", "cpp"),
        ("  template <class T> void f(T);", "cpp"),
        ("#include <vector>\n", "cpp"),
        ("void f(const std::string& a);", "cpp"),
        ("struct A {\n public:\n  int a;\n};", "cpp"),
        ("using A = int;", "cpp"),
    ],
)
def test_a_header_is_cpp_by_what_it_says(text: str, language: str) -> None:
    assert outline(text).language == language


def test_where_a_header_is_looked_for() -> None:
    files = ["src/a.c", "src/a.h", "lib/a.h", "include/shop/a.h", "include/shop/b.h", "x/c.h", "y/c.h", "d.h"]
    assert found(files, "src/a.c", "a.h") == ["src/a.h"]
    assert found(files, "src/a.c", "../lib/a.h") == ["lib/a.h"]
    assert found(files, "src/a.c", "../../a.h") == []
    assert found(files, "src/a.c", "shop/b.h") == ["include/shop/b.h"]
    assert found(files, "src/a.c", "b.h") == ["include/shop/b.h"]
    assert found(files, "src/a.c", "c.h") == [], "two files are equally far"
    assert found(files, "x/sub/a.c", "c.h") == ["x/c.h"]
    assert found(files, "src/a.c", "<shop/b.h>") == ["include/shop/b.h"]
    assert found(files, "src/a.c", "<b.h>") == [], "not below a folder of headers"
    assert found(files, "src/a.c", "<d.h>") == ["d.h"]
    assert found(files, "src/a.c", "<stdio.h>") == []


def test_a_prototype_and_all_its_bodies_are_one_function() -> None:
    files = {
        "include/os.h": "int os_open(void);\n",
        "src/unix/file.c": '#include "os.h"\nint os_open(void) { return 0; }\n',
        "src/win/internal.h": '#include "os.h"\n',
        "src/win/file.c": '#include "internal.h"\nint os_open(void) { return 1; }\n',
        "src/own.c": '#include "os.h"\nstatic int os_open(void) { return 2; }\n',
        "other/file.c": "int os_open(void) { return 3; }\n",
        "main.c": '#include "os.h"\nint main(void) { return os_open(); }\n',
    }
    project = MemoryProject(files)
    read = project.outline("main.c")
    assert read is not None
    resolution = Resolver(project).call("main.c", read, read.calls[0])
    assert (resolution.kind, resolution.candidates) == ("exact", 1)
    assert [symbol_id(project, place) for place in resolution.targets] == [
        "include/os.h::os_open",
        "src/unix/file.c::os_open",
        "src/win/file.c::os_open",
    ]


def test_calls_through_pointers_in_structs_mean_the_fields() -> None:
    files = {"a.h": "struct ops { int (*read)(int); };", "b.c": '#include "a.h"\nint read(int n);\n'}
    files["c.c"] = '#include "a.h"\nint f(struct ops *o) { return o->read(1); }'
    project = MemoryProject(files)
    read = project.outline("c.c")
    assert read is not None
    resolution = Resolver(project).call("c.c", read, read.calls[0])
    assert resolution.kind == "name"
    assert "a.h::ops.read" in [symbol_id(project, place) for place in resolution.targets]


def test_c_and_cpp_know_each_others_names() -> None:
    files = {"a.h": "int f(void);", "a.c": '#include "a.h"\nint f(void) { return 1; }'}
    files["b.cpp"] = 'extern "C" {\n#include "a.h"\n}\nclass A { int m() { return f(); } };'
    project = MemoryProject(files)
    read = project.outline("b.cpp")
    assert read is not None and read.language == cpp.LANGUAGE.name
    assert [symbol_id(project, p) for p in Resolver(project).call("b.cpp", read, read.calls[0]).targets] == [
        "a.c::f",
        "a.h::f",
    ]
