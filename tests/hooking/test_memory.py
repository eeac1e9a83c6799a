"""What is remembered of tools between two hooks, and how much of it at most."""

from herdr.hooking.memory import OWN_MAX, SESSIONS_MAX, Hold, Memories, Memory


def test_a_new_name_knows_everything_up_to_now_and_a_known_one_is_the_same() -> None:
    memories = Memories()
    first = memories.of("claude-code/1", 41)
    assert first.seq == 41 and not first.introduced
    assert memories.of("claude-code/1", 99) is first and first.seq == 41
    assert memories.of("claude-code/2", 99) is not first


def test_the_name_heard_of_longest_ago_is_forgotten() -> None:
    memories = Memories()
    first = memories.of("0", 0)
    for number in range(1, SESSIONS_MAX):
        memories.of(str(number), 0)
    assert memories.of("0", 5) is first, "all of them fit, and this one was heard of again"
    memories.of("one more", 0)
    assert memories.of("0", 5) is first
    assert len(memories.names()) == SESSIONS_MAX and "1" not in memories.names()
    assert memories.of("1", 7).seq == 7


def test_who_has_ended_is_forgotten_and_may_end_again() -> None:
    memories = Memories()
    first = memories.of("claude-code/1", 0)
    memories.forget("claude-code/1")
    memories.forget("claude-code/1")
    assert not memories.names()
    assert memories.of("claude-code/1", 0) is not first


def test_of_own_files_the_newest_are_known() -> None:
    memory = Memory(0)
    memory.own.extend(f"{number}.py" for number in range(OWN_MAX + 3))
    assert len(memory.own) == OWN_MAX and memory.own[0] == "3.py"


def test_two_memories_share_nothing() -> None:
    one, other = Memory(0), Memory(0)
    one.own.append("a.py")
    one.folders_told.add("/tmp")
    one.holds["lock"] = Hold("lock", 1, {"toolu_1"})
    assert (list(other.own), other.folders_told, dict(other.holds)) == ([], set(), {})


def test_a_hold_is_found_by_each_call_that_it_is_for() -> None:
    memory = Memory(0)
    memory.holds["a"] = Hold("a", 1, {"toolu_1", "toolu_2"})
    memory.holds["b"] = Hold("b", 2, {"toolu_3"})
    assert [memory.hold_of(f"toolu_{n}") for n in (1, 2, 3, 4)] == [
        memory.holds["a"],
        memory.holds["a"],
        memory.holds["b"],
        None,
    ]
