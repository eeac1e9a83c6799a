# ruff: noqa: RUF001 - the marks and words of Chinese
"""Pure: the wording by which decisions, proposals, answers, results and asides are told, in English and Chinese.

Tables only. They were drawn up and mended on the transcripts in tests/transcripts; the README there says how far they
carried on sessions that they had not seen.
"""

import re


def _table(*rows: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{row})" for row in rows), re.I)


# Verbs of the next step: who wants to look, run or ask has decided nothing that outlives the step.
_STEP = (
    r"(?:know|see|understand|consider|remind|give me|check|look|ask|think|decide|talk|discuss|test|try"
    r"|run|find|tell"
    r"|wait|start"
    r"|begin|go over"
    r"|go through|read|re-read|review|measure|figure|hear|verify|debug|investigate|continue|proceed"
    r"|commit|push|say"
    r"|explain|show|explore|examine|search|trace|reproduce|compare|confirm|get (?:an|a|the) \w+|open"
    r"|finish|summari[sz]e"
    r"|be honest|call it|leave it at)"
)
_BUILD = (
    r"(?:add|allow|append|apply|avoid|bind|build|bump|bundle|cache|call it|cap|change|convert|copy"
    r"|create|default"
    r"|delete|disable|drop|emit|enable|ensure|exclude|expose|extract|fall back|generate|go with|handle"
    r"|hide|hook|ignore"
    r"|implement|include|inline|inherit|invert|keep|leave|limit|log|make|mark|merge|move|name|park|pass"
    r"|persist|pin"
    r"|prefix|print|put|raise|refuse|reject|remove|rename|replace|require|restrict|return|reuse|round"
    r"|send|separate|set"
    r"|skip|sort|split|stay with|stick (?:to|with)|stop \w+ing|store|support|swap|switch|throttle|throw"
    r"|treat|turn|use"
    r"|warn|wire|wrap|write)"
)

ASIDE = _table(
    r"\b(?:wants? to|need to|needs to|have to|has to|had to|like to|let me|let's|let us|lets|should"
    r"|must|going to|gotta)"
    rf" (?:just |first |also |quickly )?(?:be able to )?{_STEP}\b",
    r"\b(?:do|did|does|would|could|can|is|was|are)(?:n't| not) (?:really |even )?(?:know|think|see"
    r"|understand|remember"
    r"|mind|get (?:it|that|this|why|what)|believe|have (?:a|an|any|to|time)|recall|worry|like that|work"
    r"|sure|show|appear"
    r"|seem|matter|there|clear|want to decide)\b",
    r"\b(?:i|we) (?:never|always|only) (?:remember|know|saw|see|get|got|had|have|forget)\b",
    r"\bno (?:idea|problem|worries|rush|hurry|need|thanks|clue|wonder|matter)\b|\bnever mind\b|\bif only\b",
    r"\bi'd like (?:an?|your|some) (?:\w+ )?(?:review|look|opinion|idea|overview|summary|explanation"
    r"|answer|estimate)\b",
    r"\bas always\b|\bnot only\b|\bonly (?:just|then|now|happens?|works?|fails?|occurs?|shows?|seems?"
    r"|affects?|matters?)\b|\bneed(?:s|ed)? (?:help|more|your)\b",
    r"\buse(?:d|s)? to\b|\bthe use of\b|\bin use\b|\bof (?:no )?use\b|\bmake sense\b|\bmakes sense\b"
    r"|\bput differently\b",
    r"\b(?:must|should) (?:have (?:been|had)|be (?:because|the|some|a|an)\b)|\bkeeps? (?:failing"
    r"|getting|coming|hanging)\b",
    r"\bleave it (?:at that|there)\b|\bget back to\b|\b(?:was|were|been|has|had) always\b"
    r"|\balways (?:was|were|been|so)\b",
)
"""Phrases that look like constraints and are none; they are taken out before the tables below are tried."""

QUOTED = re.compile(r"`[^`]*`|(?<!\w)--?[a-z][\w-]*|\"[^\"]{1,200}\"|“[^”]{1,200}”")
"""Code, options and quotations: `--only-stats` has no `only`."""

USER_RULE = _table(
    r"\bmust(?:n't| not)?\b|\bnever\b|\balways\b|\bdon't\b|\bdo not\b|\bdont\b|\bno longer\b|\bnot allowed\b",
    r"\bha(?:s|ve) to\b|\bneeds? to (?:be|work|run|have|stay|survive|support|handle|add|keep|use|make"
    r"|remove)\b|\bmake sure\b"
    r"|\bonly\b",
    r"\bat (?:most|least)\b|\bno more than\b|\binstead\b|\brather than\b|\bprefer(?:ably)?\b|\bfrom now on\b",
    r"\bkeep(?:ing)?\b|\bstick (?:to|with)\b|\bstay with\b|\bshould(?:n't| not)?\b|\bwants?\b(?! me\b)"
    r"|\bwe'd like\b",
    r"\bi'd (?:like|prefer|rather)\b|\blet's\b|\blets\b|\bgo(?:ing)? (?:with|for)\b|\bdecided\b"
    r"|\bagreed?\b|\bit is$",
    r"\bwe(?:'ll| will)? use\b|\bno new\b|\bno need for\b|\bafter all\b|\b(?:please|careful)\b.*\bnot\b"
    r"|\bby default\b",
    r", not (?!sure|yet|really)\w|\bis (?:better|right|fine) (?:yes|there)\b|\bparked\b|\bis not ok\b"
    r"|\bbetter (?:that|if)\b",
    r"(?:^|[,:;(] ?|\b(?:but|and|so|then|please|just|now|yes|no|ok|okay|for now|instead|also"
    rf"|that) ){_BUILD}\s+(?=\S)",
    r"^no (?=\w+ (?:\w+ ){0,3}(?:for|in|on|at|please|then|here|yet|anywhere)\b)"
    r"|(?<![们在是])用 ?[A-Z]\w+(?=$|[，。吧])",
    r"^(?:now|next|also|then)[,:]? an? |\bwould be (?:\w+ )?(?:easier|better|nicer|cleaner|nice|great"
    r"|good)\b.*\bif\b|^not worth\b",
    r"必须|一定要|务必|不要|不能|不得|不许|禁止|千万|只能|只用|只要(?!是)|统一|保留|保持|改成|改为|换成"
    r"|换用|改用|采用|选用",
    r"就用|先用|先不|暂不|暂时不|先别|别(?!的|人|处|说)|放到|放在|决定(?!吧)|定为|就按|同意|不需要|不用"
    r"|去掉|删掉|加上|加个|加一个",
    r"(?:处理|去|删|改|清)掉|先把|那就|(?:做|改|加|换|删|用)吧|调[到成]|设[成为]|设置为|再加|要保证"
    r"|要支持|要包含|记得|尽量|优先|希望|我想(?!知道|问|看|了解)|(?:都做|就行|即可)$|^(?:那|就|用|改"
    r"|先)[^？]*吧$|最多|至少|上限|限制|支持|返回|兼容",
    r"^(?:那|嗯|好|行|对|可以|好的)?[，, ]?用|否则就?|一律|全部用|以后都",
)
"""How users lay something down."""

USER_STEP = _table(
    r"^(?:(?:please|ok|okay|so|now|and|then|first|just|also|let's|lets|can you|could you|next|yes|well"
    r"|i'll|i will|will|i'm going to|going to|i can"
    rf"|hmm+)[,:]? )*{_STEP}\b",
    r"^(?:it|this|that) (?:seems?|looks?|sounds?|appears?)\b(?!.*\bshould\b)",
    r"^i (?:wonder|was wondering|guess|suppose)\b|^(?:h+m+,? |ok,? )?wait\b.{0,10}$|^(?:picking"
    r"|continuing|resuming)\b",
    r"^(?:thanks|thx|thank you|great|good|nice|cool|perfect|done|continue|proceed|hello|hi"
    r"|hey)\b[^,:;]{0,20}$",
    r"^(?:he|she|they|customers?|users?|a user|support|somebody|someone)\b.{0,40}\b(?:says?|said"
    r"|complains?|reports?|thinks?|told)\b",
    r"看看|看一下|看下|先看|跑一下|跑一遍|测一下|测一遍|说说|说一下|查一下|查查|试试|试一下|解释一下"
    r"|总结一下|提交一下|继续吧|先这样|先到这",
    r"问一?下|问问|去问|等一下|我去[问查看]",
)
"""Steps and small talk of users; a rule in the same sentence still counts, if it is a strong one."""

REPORT = _table(
    r"^(?:h+m+,? |oh,? |ok,? |so,? |well,? )?(?:it|this|that|there|they|he|she|customers?|users?"
    r"|somebody|someone|nothing|everything)\b"
    r"(?! (?:should|must|has to|needs to|would be))",
    r"\bi (?:just |also |still )?(?:got|get|ran|tried|did|saw|see|had|was|am|pushed|deployed|changed"
    r"|looked|checked|made|found|fixed"
    r"|think|thought|inherited|wrote|asked)\b",
    r"^(?:h+m+,? |ok,? |just )?(?:deployed|pushed|tried|ran|done|merged|updated|checked|tested"
    r"|restarted|installed)\b",
    r"\b(?:crash(?:es|ed)?|fail(?:s|ed|ing|ure)?|broken|complain\w*|went|happens?|happened"
    r"|reported|printed|shows?)\b(?! ?(?:should|must))",
    r"\w(?:Error|Exception)\b|\bHTTP [45]\d\d\b|\b[45]\d\d(?:s|ed)\b",
    r"报错|报了个错|挂了|失败了|不行|出现了|跑了|删了|试了|发现|反馈|线上问题|已经|压测|部署到|投诉过"
    r"|炸了|^结果",
)
"""What somebody has seen or done; no rule for what is to come."""

STRONG_RULE = _table(
    r"\bmust\b|\bnever\b|\balways\b|\bdon't (?:touch|change|use|push|add|import|break|remove|delete)\b"
    r"|\binstead of\b",
    r"\bgo with\b|\bstick (?:to|with)\b|\bmake sure\b|\bno new\b|, not \w",
    r"必须|一定要|不要|不能|禁止|只能|改成|改为|换成|改用|采用|就用|先用|先不|保留|保持|就按|再加|决定|先把",
)

REQUESTS = _table(
    r"\b(?:features?|want|need|should|please|do the following|todo|tasks?|changes?|requirements?|rules?"
    r"|constraints?|to do|must|here's what)\b.*:$",
    r"(?:要求|需求|请|功能|如下|需要|改动|任务|规则|约束).*[：:]$",
)
"""What stands above a list of requests."""

ASKED_TO = _table(
    r"^(?:(?:ok|okay|so|now|and|also|please|hmm|great|nice)[,.]? )*(?:can|could|would|will) (?:you"
    rf"|we) (?:please )?(?:also |just )?{_BUILD}\b",
    r"(?:能不能|能否|可以|可不可以|麻烦)(?:帮我|请你|你|把)?.*(?:加|改|换|去掉|删|支持|实现|写)",
)
"""Questions that are requests."""
NOD = _table(r", ?(?:no|right|yeah|yes|ok|okay|correct)\?+$", r"(?:对吧|是吧|好吧)[？?]$")
"""Statements that only ask for a nod."""

YES = _table(
    r"^(?:(?:hmm+|ok|okay|well|oh|ah)[,.]? )?(?:(?:yes|yep|yeah|yup|agreed?|sounds good|fair enough"
    r"|lgtm|approved|both)\b"
    r"|(?:sure|ok(?:ay)?|k|right|correct|exactly|fine|good|great|perfect)(?=[,.!]|$))",
    r"^(?:嗯|好|行|对|可以|是)(?:的|吧|啊)?(?=[，。！,. ]|$)|^(?:同意|没问题|就这样|就这么|都要|都做|赞成)",
)
POINTS = _table(
    rf"^(?:(?:h+m+|ok|okay|yes|well|then|just|so|no)[,.]? )*{_BUILD} (?:that|this|it|them|those"
    r"|those ones)(?: then| please| now)?$"
)
"""An order that says of what only by pointing to it."""

DO_IT = _table(
    r"^(?:(?:hmm+|ok|okay|yes|yeah|well|sure|great|good)[,.]? )*(?:do it|do that|do so|go ahead"
    r"|go for it|please do|make it so|implement (?:it|that)"
    r"|let's do (?:it|that)|proceed with (?:it|that))\b",
    r"^(?:嗯|好|行|对|可以)?(?:的)?[，, ]?(?:那)?(?:就这么|就按这个|照这个|按你说的|开始)?(?:做|改|办"
    r"|实现|来)吧",
)
"""A word to go on with whatever was said last."""
NO = _table(
    r"^(?:(?:hmm+|mm+|ok|well|oh|ah)[,.]? )?(?:no|nope|nah|not (?:yet|now|really|needed|necessary)"
    r"|never|neither|skip it"
    r"|later|leave it|drop it)\b",
    r"^(?:不|别|没必要|算了|先不|暂时不|不用|不要|不需要)",
)
PICK = _table(
    r"^(?:(?:hmm+|ok|okay|yes|then|i'd say|let's do)[,.]? )?(?:option |the )?(?:[a-d1-9]|first|second"
    r"|third|last|latter|former)"
    r"(?: one| option)?(?: please| it is)?[.!,]|\bit is[.!]?$|\bplease[.!]?$",
    r"^(?:就|选|用|先用|那就)?(?:方案)?(?:[A-Da-d1-9一二三]|第[一二三四])(?:个|种)?(?:吧|，|。|$)",
)
"""Short answers that choose."""

LABEL = re.compile(
    r"^(?:(?:hmm+|ok|okay|yes|then|i'd say|let's do|go with|use|do|take)[,.]? )*(?:option |the )?([a-d]"
    r"|[1-9])(?= it is|[.,!)]| please|$)"
    r"|^(?:就|选|用|先用|那就|那)+ ?(?:方案)? ?([a-d]|[1-9])(?=个|种|吧|，|。| |$)|\boption ([a-d]"
    r"|[1-9])\b|方案 ?([a-d]|[1-9])",
    re.I,
)
"""An option that is chosen by its label."""

DEFERRED = _table(
    r"\b(?:no idea|don't know|not sure|have to (?:check|ask|think)|will (?:check|ask|tell|think"
    r"|get back)|let me (?:check|ask|think|look|see)"
    r"|i'll (?:check|ask|think|tell|see|look|get back|let you know)|(?:need|have) to (?:check|ask|look"
    r"|find)|good question"
    r"|it depends|^(?:\w+ ){0,3}(?:later|tomorrow)(?=[.!]?$)|we'll see"
    r"|can't (?:tell|say) (?:from here|yet)|unclear)(?!\w)",
    r"(?:明天|回头|晚点|晚些)(?:再)?(?:问|看|说)|不知道|不确定|不清楚|问一?下|问问|去问|确认一?下"
    r"|等.{0,6}(?:回复|确认|答复)|再(?:说|看|弄|做|定|议)"
    r"|下周|改天|先沟通|待定|还没定"
    r"|回头|之后再|看不出",
)
"""An answer that is none."""

PROPOSED = _table(
    r"\b(?:should|shall) (?:i|we|it|this|that|they|the|`?\w+`?)\b.*\?|\b(?:want|like) me to\b"
    r"|\bdo you (?:want|prefer|need)\b",
    r"\bwould you (?:like|prefer)\b|\bwhich (?:of|one|way|do|would)\b|\bare you (?:ok|okay|fine"
    r"|happy)\b|\bwhat do you think\b",
    r"\bi(?:'d| would)\b|\bi (?:suggest|propose|recommend)\b|\bmy (?:suggestion|recommendation"
    r"|preference|proposal)\b|\bok with you\b",
    r"\b(?:two|three|four|several|some|other) (?:\w+ )?(?:ways|options|choices|possibilities|approaches"
    r"|schools|things)\b"
    r"|\beither\b.*\bor\b",
    r"\bwhat should\b|\bis it intended\b|\b(?:alternative|option)s?\b|\bor\b.*\?"
    r"|\bthe simpler approach\b|\bwe could\b",
    r"要不要|是否|建议|推荐|倾向|哪种|哪个|可以考虑|我打算|怎么样|可以吗|行吗|好吗|需要我|还是.*？"
    r"|您觉得|你觉得|决定用|要做吗|办法|也可以|或者|[两二三四几]种",
)
"""How something is laid before the user."""

VAGUE_ASK = _table(
    r"\b(?:do|want|like|need|prefer) (?:me to do )?(?:this|that|it|these|which)\b|\bwhich (?:of|one"
    r"|way)\b|\bwhat do you think\b",
    r"\bok with you\b|\bare you (?:ok|okay|fine)(?: with (?:this|that|it))?\?|\bshall i\?"
    r"|\bwant me to (?:do|go)\b|\bthoughts\b",
    r"哪种|哪个|要做吗|可以吗|行吗|好吗|怎么样|您觉得|你觉得|你决定",
)
"""Questions that say nothing without the proposal before them."""

HYPOTHETICAL = _table(
    r"\b(?:could|might|would|may|perhaps|maybe|possibly|alternatively|either|if (?:you|we|it|they|that"
    r"|this|the|i)|options?(?! [a-d1-9]\b)"
    r"|whether|i'd|we'd|it'd|suppose|for example|e\.g\.|suggest|recommend|propose|should (?:i|we))\b",
    r"可以|可能|如果|或者|建议|推荐|(?<!这个)方案(?! ?[A-D1-9一二三])|要不要|是否|也许|假如|比如|选项"
    r"|倾向|考虑",
)
"""What an assistant only thinks about."""

OWN_CHOICE = _table(
    r"\b(?:i|we)(?:'ve| have)? (?:decided|agreed|settled on|opted|chose)\b|\b(?:i'm|i am|we're"
    r"|i'll be) (?:going|sticking) with\b",
    r"\b(?:i'll|i will|we'll|we will|let's|let us) (?:go|stick|stay) with\b|\bwent with\b",
    r"决定(?:采用|用|改|把|不|先)|(?:选用|采用)(?:了)?|就按(?:这个|您|你)|^(?:改一种写法|改法|做法是?"
    r"|更稳妥的做法是|结论|决定)[：:]|我决定",
)
"""An assistant's decision that needs no reason beside it."""

OWN_LABEL = _table(r"^(?:decision|decided|fix|solution|approach|choice|conclusion)\s*:")
"""A choice that is labelled as one; several of them are a list of findings."""

OWN_COMMITMENT = _table(
    r"\b(?:i'll|i will|i'm|i am|we'll|we will|i made|i kept|i used|i left)\b|^(?:making|keeping|using"
    r"|leaving)\b",
    r"\b(?:i've|i have) (?:also |now )?(?:made|kept|used|left|put|chosen|moved|added|removed|changed"
    r"|replaced|dropped|switched"
    r"|split|turned|set|pinned|limited|restricted|wrapped|renamed|written|treated|merged|marked)\b",
    r"^so the\b.*\b(?:instead of|rather than)\b",
    r"我(?!们|这里|没|看|先)|(?:^|，|：)(?:用|改用|不用|改成|改为|只(?!要)|把|在)|，不",
)
OWN_DESIGN = _table(
    rf"\b(?:i'll|i will|we'll) (?!{_STEP})(?:\S+ ){{1,6}}(?:by hand|using|without|via|as an?|in its own"
    r"|on top of)\b|我打算|我(?:把|将)(?!.*(?:跑|看|查))",
    r"\b(?:i'll|i will|i'm|i am|we'll) (?:also |just |now |then |therefore |simply )*(?:throttl|treat"
    r"|limit|pin|mark|cap|refus|default"
    r"|invert|ignor|skip|keep|us(?:e|ing)\b|stor|"
    r"mak(?:e|ing)\b(?! (?:the |these |those |this |a few |some |all )?(?:\w+ )?(?:changes?|edits?"
    r"|updates?|fix(?:es)?|sure|it)\b)|return|rais|reject|restrict|drop|switch|replac)",
)
OWN_CONTRAST = _table(
    r"\bbecause\b|\bso that\b|\binstead of\b|\brather than\b|, not \w",
    r"因为|避免|以免|否则|不然|而不是|免得|这样",
)
"""What makes a sentence beside an edit a decision, though nobody says `I`."""
OWN_REASON = _table(
    r"\bbecause\b|\bsince\b|\bso that\b|\bso (?:it|they|we|nothing|nobody)\b|\bto (?:avoid|keep|prevent"
    r"|stay)\b",
    r"\botherwise\b|\binstead of\b|\brather than\b|\bin favou?r of\b|, not \w|\bonly\b.*\b(?:when|if"
    r"|once|for)\b|\bwithout \w+ing\b",
    r"因为|由于|为了|这样|避免|以免|否则|不然|从而|而不是|只有|免得|保证",
)

OWN_HEAD = re.compile(
    r": | (?:instead of|rather than|because|since|so that|otherwise) |，(?:这样|避免|以免|否则|不然"
    r"|因为|而不是)"
)
"""What comes from here on explains a choice, and may well be hypothetical."""

REASON = re.compile(
    r"[,;:(.]? *\b(?:because|since (?=i|we|it|the|they|that|you|there|not|\w+ )|so that|otherwise"
    r"|as (?=we |it's|it is|they |the ))\b"
    r"|, (?=we (?:already|have) |people |it's |they |that's |our )|[，,；]?(?=因为|由于|否则|不然|以免"
    r"|免得|避免"
    r"|这样|我们有|我们已|太|很多|万一|方便)",
    re.I,
)
"""Where the reason of a decision begins."""

CHANGED_MIND = _table(
    r"\b(?:actually|after all|on second thought|changed? my mind|wait|instead|back to|no longer"
    r"|scratch that|forget (?:that|it|about)"
    r"|not .* any ?more|switch(?:ed|ing)? (?:back )?to|change that|drop (?:the|that)|let's not)\b",
    r"还是用|改成|改为|换成|改用|不用了|算了|那就|不再|等一下|反悔|撤回|先前|之前说的|还是(?!要|有|会|不)",
)
REJECTED = re.compile(
    r"(?:\binstead of|\brather than|, not|\bnot|\bdrop(?:ping)?|\bdon't use|\bno longer|\bremov(?:e"
    r"|ing)|\bgive up|\baway from|\bno"
    r"|\breplac(?:e|ing)|不要|不用|而不是|不再用|去掉|放弃|先不|别用|不做) *([^,.;:，。；：]{2,60})"
    r"|([\w\u3400-\u9fff]{2,20})先不",
    re.I,
)
"""What a decision turns down."""

FIXED_SAID = _table(
    r"\b(?:works|working|fixed|green|passes|passing|solved|resolved|gone) (?:now|again)\b"
    r"|\bthat (?:did it|fixed it|works|helped)\b",
    r"\b(?:a )?(?:different|another|new) (?:one|error)\b|\b(?:it|everything|all) (?:works|is (?:green"
    r"|fine))\b|\bmy (?:mistake|fault|bad)\b",
    r"好了|(?:^|，)过了|可以了|没问题了|解决了|通过了|正常了|不报错了|换了个错|另一个(?:错|报错)|不是同一个",
)
"""A user's word that what was reported is over."""

DONE = _table(
    r"^(?:all )?(?:done|fixed|committed|tagged|released|deployed|merged|pushed|finished|completed"
    r"|implemented|published|reverted)\b",
    r"^(?:all|everything|the) .{0,30}\b(?:tests )?(?:pass(?:es|ed|ing)?|green)\b|\ball tests (?:pass"
    r"|are green)",
    r"^(?:done|ok)[:,] |\b(?:works|is fixed|is done|is in place) now\b",
    r"^(?:已|全部|都|测试)(?:全部)?(?:完成|提交|通过|修复|上线|发布|部署|改为|修改)|^(?:完成|通过|修好|搞定)",
)
"""That something is done."""

NOT_DONE = _table(
    r"\b(?:but|still|not|should|would|once|if|except|fail(?:s|ed|ing)?|red)\b", r"但|还|没|失败|除了"
)
"""What makes a word of success none."""

LEAD_IN = _table(
    r"^(?:let me|i'll (?:look|check|start|read|take|first|begin|see|find|have)|looking|checking"
    r"|first[,:]? (?:let|i)|now (?:let|i|the)|sure|ok(?:ay)?|good"
    r"|next|running|reading|measuring|writing|starting|let's (?:see|look|check))\b",
    r"^(?:让我|我先|我来|我看|先看|先|接下来|现在|好的|看看|再)",
)
"""How an assistant begins a step; no answer yet."""

OFFER = _table(
    r"^(?:(?:and|or|so|also|otherwise|then|now)[,:]? )*(?:do you |would you )?(?:want|like"
    r"|need) me to\b|^(?:(?:and|or|so|then)[,:]? )*shall i\b",
    r"^(?:(?:and|or|so|then)[,:]? )*should i (?:also|go|proceed|continue|start|commit|open)\b"
    r"|\banything else\b|\bready to\b",
    r"需要我|要不要我|还有(?:什么|别的)|要我(?:帮|继续)",
)
"""Questions that are over when the user goes on to something else."""
