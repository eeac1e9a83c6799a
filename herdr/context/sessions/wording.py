# ruff: noqa: RUF001 - the marks and words of Chinese
"""Pure: the wording by which decisions, proposals, answers, results and asides are told, in English and Chinese.

Tables only. They were drawn up on the transcripts in tests/transcripts that are not held out; how far they carry
on others stands in the README there.
"""

import re


def _table(*rows: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{row})" for row in rows), re.I)


# Verbs of the next step: who wants to look, run or ask has decided nothing that outlives the step.
_STEP = (
    r"(?:know|see|understand|check|look|ask|think|decide|talk|discuss|test|try|run|find|tell|wait|start|begin|go over"
    r"|go through|read|re-read|review|measure|figure|hear|verify|debug|investigate|continue|proceed|commit|push|say"
    r"|explain|show|explore|examine|search|trace|reproduce|compare|confirm|get (?:an|a|the) \w+|open|finish|summari[sz]e"
    r"|be honest|call it|leave it at)"
)
_BUILD = (
    r"(?:add|allow|append|apply|avoid|bind|build|bump|bundle|cache|call it|cap|change|convert|copy|create|default"
    r"|delete|disable|drop|emit|enable|ensure|exclude|expose|extract|fall back|generate|go with|handle|hide|hook|ignore"
    r"|implement|include|inline|inherit|invert|keep|leave|limit|log|make|mark|merge|move|name|park|pass|persist|pin"
    r"|prefix|print|put|raise|refuse|reject|remove|rename|replace|require|restrict|return|reuse|round|send|separate|set"
    r"|skip|sort|split|stay with|stick (?:to|with)|stop \w+ing|store|support|swap|switch|throttle|throw|treat|turn|use"
    r"|warn|wire|wrap|write)"
)

ASIDE = _table(
    rf"\b(?:wants? to|need to|needs to|have to|has to|had to|like to|let me|let's|let us|lets|should|must|going to|gotta)"
    rf" (?:just |first |also |quickly )?(?:be able to )?{_STEP}\b",
    r"\b(?:do|did|does|would|could|can|is|was|are)(?:n't| not) (?:really |even )?(?:know|think|see|understand|remember"
    r"|mind|get (?:it|that|this|why|what)|believe|have (?:a|an|any|to|time)|recall|worry|like that|work|sure|show|appear"
    r"|seem|matter|there|clear|want to decide)\b",
    r"\b(?:i|we) (?:never|always|only) (?:remember|know|saw|see|get|got|had|have|forget)\b",
    r"\bno (?:idea|problem|worries|rush|hurry|need|thanks|clue|wonder|matter)\b|\bnever mind\b|\bif only\b",
    r"\bas always\b|\bnot only\b|\bonly (?:just|then|now)\b|\bneed(?:s|ed)? (?:help|more|your)\b",
    r"\buse(?:d|s)? to\b|\bthe use of\b|\bin use\b|\bof (?:no )?use\b|\bmake sense\b|\bmakes sense\b|\bput differently\b",
    r"\b(?:must|should) (?:have (?:been|had)|be (?:because|the|some|a|an)\b)|\bkeeps? (?:failing|getting|coming|hanging)\b",
    r"\bleave it (?:at that|there)\b|\bget back to\b",
)
"""Phrases that look like constraints and are none; they are taken out before the tables below are tried."""

USER_RULE = _table(
    r"\bmust(?:n't| not)?\b|\bnever\b|\balways\b|\bdon't\b|\bdo not\b|\bdont\b|\bno longer\b|\bnot allowed\b",
    r"\bha(?:s|ve) to\b|\bneeds? to (?:be|work|run|have|stay|survive|support|handle)\b|\bmake sure\b|\bonly\b",
    r"\bat (?:most|least)\b|\bno more than\b|\binstead\b|\brather than\b|\bprefer(?:ably)?\b|\bfrom now on\b",
    r"\bkeep(?:ing)?\b|\bstick (?:to|with)\b|\bstay with\b|\bshould(?:n't| not)?\b|\bwants?\b(?! me\b)|\bwe'd like\b",
    r"\bi'd (?:like|prefer|rather)\b|\blet's\b|\blets\b|\bgo(?:ing)? (?:with|for)\b|\bdecided\b|\bagreed?\b|\bit is$",
    r"\bwe(?:'ll| will)? use\b|\bno new\b|\bno need for\b|\bafter all\b|\b(?:please|careful)\b.*\bnot\b|\bby default\b",
    r", not (?!sure|yet|really)\w|\bis (?:better|right|fine) (?:yes|there)\b|\bparked\b|\bis not ok\b|\bbetter (?:that|if)\b",
    rf"(?:^|[,:;(] ?|\b(?:but|and|so|then|please|just|now|yes|no|ok|okay|for now|instead|also|that|to) ){_BUILD}\b(?!ed|s\b|'s)",
    r"必须|一定要|务必|不要|不能|不得|不许|禁止|千万|只能|只用|只要(?!是)|统一|保留|保持|改成|改为|换成|换用|改用|采用|选用",
    r"就用|先用|先不|暂不|暂时不|先别|别(?!的|人|处|说)|放到|放在|决定(?!吧)|定为|就按|同意|不需要|不用|去掉|删掉|加上|加个|加一个",
    r"再加|要保证|要支持|要包含|记得|尽量|优先|希望|我想(?!知道|问|看|了解)|(?:吧|都做|就行|即可)$|最多|至少|上限|限制|支持|返回|兼容",
    r"^(?:那|嗯|好|行|对|可以|好的)?[，, ]?用|否则就?|一律|全部用|以后都",
)
"""How users lay something down."""

USER_STEP = _table(
    rf"^(?:(?:please|ok|okay|so|now|and|then|first|just|also|let's|lets|can you|could you|next|yes|well|hmm+)[,:]? )*{_STEP}\b",
    r"^(?:thanks|thx|thank you|great|good|nice|cool|perfect|done|continue|proceed|hello|hi|hey)\b[^,:;]{0,20}$",
    r"看看|看一下|看下|先看|跑一下|跑一遍|测一下|测一遍|说说|说一下|查一下|查查|试试|试一下|解释一下|总结一下|提交一下|继续吧|先这样|先到这",
    r"问一?下|问问|去问|等一下|我去[问查看]",
)
"""Steps and small talk of users; a rule in the same sentence still counts, if it is a strong one."""

STRONG_RULE = _table(
    r"\bmust\b|\bnever\b|\balways\b|\bdon't (?:touch|change|use|push|add|import|break|remove|delete)\b|\binstead of\b",
    r"\bgo with\b|\bstick (?:to|with)\b|\bmake sure\b|\bno new\b|, not \w",
    r"必须|一定要|不要|不能|禁止|只能|改成|改为|换成|改用|采用|就用|先用|先不|保留|保持|就按|再加|决定|先把",
)

ASKED_TO = _table(
    rf"^(?:(?:ok|okay|so|now|and|also|please|hmm|great|nice)[,.]? )*(?:can|could|would|will) (?:you|we) (?:please )?"
    rf"(?:also |just )?{_BUILD}\b",
    r"(?:能不能|能否|可以|可不可以|麻烦)(?:帮我|请你|你|把)?.*(?:加|改|换|去掉|删|支持|实现|写)",
)
"""Questions that are requests."""

YES = _table(
    r"^(?:(?:hmm+|ok|okay|well|oh|ah)[,.]? )?(?:yes|yep|yeah|yup|sure|ok(?:ay)?|agreed?|k|right|correct|exactly|fine|good"
    r"|great|sounds good|do it|do that|go ahead|go for it|please do|make it so|perfect|fair enough|lgtm|approved|both)\b",
    r"^(?:嗯|好|行|对|可以|同意|是的?|没问题|就这样|就这么|都要|都做|赞成)",
)
NO = _table(
    r"^(?:(?:hmm+|mm+|ok|well|oh|ah)[,.]? )?(?:no|nope|nah|not (?:yet|now|really|needed|necessary)|never|neither|skip it"
    r"|later|leave it|drop it)\b",
    r"^(?:不|别|没必要|算了|先不|暂时不|不用|不要|不需要)",
)
PICK = _table(
    r"^(?:(?:hmm+|ok|okay|yes|then|i'd say|let's do)[,.]? )?(?:option |the )?(?:[a-d1-9]|first|second|third|last|latter|former)"
    r"(?: one| option)?(?: please| it is)?[.!,]|\bit is[.!]?$|\bplease[.!]?$",
    r"^(?:就|选|用|先用|那就)?(?:方案)?(?:[A-Da-d1-9一二三]|第[一二三四])(?:个|种)?(?:吧|，|。|$)",
)
"""Short answers that choose."""

DEFERRED = _table(
    r"\b(?:no idea|don't know|not sure|have to (?:check|ask|think)|will (?:check|ask|tell|think|get back)|let me (?:check|ask|think)"
    r"|i'll (?:check|ask|think|tell|see|look|get back|let you know)|need to (?:check|ask)|good question|tomorrow|depends|later|we'll see"
    r"|can't (?:tell|say) (?:from here|yet)|unclear)\b",
    r"不知道|不确定|不清楚|问一?下|问问|去问|确认一?下|等.{0,6}(?:回复|确认|答复)|再说|再看|待定|还没定|回头|之后再|看不出",
)
"""An answer that is none."""

PROPOSED = _table(
    r"\b(?:should|shall) (?:i|we|it|this|that|they|the|`?\w+`?)\b.*\?|\b(?:want|like) me to\b|\bdo you (?:want|prefer|need)\b",
    r"\bwould you (?:like|prefer)\b|\bwhich (?:of|one|way|do|would)\b|\bare you (?:ok|okay|fine|happy)\b|\bwhat do you think\b",
    r"\bi(?:'d| would)\b|\bi (?:suggest|propose|recommend)\b|\bmy (?:suggestion|recommendation|preference|proposal)\b|\bok with you\b",
    r"\bwhat should\b|\bis it intended\b|\b(?:alternative|option)s?\b|\bor\b.*\?|\bthe simpler approach\b|\bwe could\b",
    r"要不要|是否|建议|推荐|倾向|哪种|哪个|可以考虑|我打算|怎么样|可以吗|行吗|好吗|需要我|还是.*？|您觉得|你觉得|决定用|要做吗|办法",
)
"""How something is laid before the user."""

VAGUE_ASK = _table(
    r"\b(?:do|want|like|need|prefer) (?:me to do )?(?:this|that|it|these|which)\b|\bwhich (?:of|one|way)\b|\bwhat do you think\b",
    r"\bok with you\b|\bare you (?:ok|okay|fine)(?: with (?:this|that|it))?\?|\bshall i\?|\bwant me to (?:do|go)\b|\bthoughts\b",
    r"哪种|哪个|要做吗|可以吗|行吗|好吗|怎么样|您觉得|你觉得|你决定",
)
"""Questions that say nothing without the proposal before them."""

HYPOTHETICAL = _table(
    r"\b(?:could|might|would|may|perhaps|maybe|possibly|alternatively|either|if (?:you|we|it|they|that|this|the|i)|option"
    r"|whether|i'd|we'd|it'd|suppose|for example|e\.g\.|suggest|recommend|propose|should (?:i|we))\b",
    r"可以|可能|如果|或者|建议|推荐|方案|要不要|是否|也许|假如|比如|选项|倾向|考虑",
)
"""What an assistant only thinks about."""

OWN_CHOICE = _table(
    r"\b(?:i|we)(?:'ve| have)? (?:decided|agreed|settled on|opted|chose)\b|\b(?:i'm|i am|we're|i'll be) (?:going|sticking) with\b",
    r"\b(?:i'll|i will|we'll|we will|let's|let us) (?:go|stick|stay) with\b|\bwent with\b",
    r"^(?:decision|decided|fix|solution|approach|choice|conclusion)\s*:",
    r"决定(?:采用|用|改|把|不|先)|(?:选用|采用)(?:了)?|就按(?:这个|您|你)|^(?:改一种写法|改法|做法是?|更稳妥的做法是|结论|决定)[：:]|我决定",
)
"""An assistant's decision that needs no reason beside it."""

OWN_COMMITMENT = _table(
    r"\b(?:i'll|i will|i'm|i am|we'll|we will|i've|i have|i made|i kept|i used|i left|so the|so it|making|keeping|using|leaving)\b",
    r"我(?:会|将|打算|改成|改为|用了|把|就|不)|(?:^|，|：)(?:用|改用|不用|改成|改为|只|把|在)|，不",
)
OWN_DESIGN = _table(
    r"\b(?:i'll|i will|i'm|i am|we'll) (?:also |just |now |then |therefore |simply )*(?:throttl|treat|limit|pin|mark|cap|refus|default"
    r"|invert|ignor|skip|keep|leav|us(?:e|ing)\b|mak|stor|return|rais|reject|restrict|drop|switch|replac)",
)
OWN_REASON = _table(
    r"\bbecause\b|\bsince\b|\bso that\b|\bso (?:it|they|we|the|nothing|nobody)\b|\bthat way\b|\bto (?:avoid|keep|prevent|stay)\b",
    r"\botherwise\b|\binstead of\b|\brather than\b|\bin favou?r of\b|, not \w|\bonly\b.*\b(?:when|if|once|for)\b|\bwithout \w+ing\b",
    r"因为|由于|这样|避免|以免|否则|不然|从而|而不是|只有|免得|保证",
)

REASON = re.compile(
    r"[,;:(.]? *\b(?:because|since (?=i|we|it|the|they|that|you|there|not|\w+ )|so that|otherwise|as (?=we |it's|it is|they |the ))\b"
    r"|, (?=we already|people |it's |they |that's |our )|[，,；]?(?=因为|由于|否则|不然|以免|免得|避免|这样|我们有|我们已|太|很多|万一|方便)",
    re.I,
)
"""Where the reason of a decision begins."""

CHANGED_MIND = _table(
    r"\b(?:actually|after all|on second thought|changed? my mind|wait|instead|back to|no longer|scratch that|forget (?:that|it|about)"
    r"|not .* any ?more|switch(?:ed|ing)? (?:back )?to|change that|drop (?:the|that)|let's not)\b",
    r"还是用|改成|改为|换成|改用|不用了|算了|那就|不再|等一下|反悔|撤回|先前|之前说的|还是(?!要|有|会|不)",
)
REJECTED = re.compile(
    r"(?:\binstead of|\brather than|, not|\bnot|\bdrop(?:ping)?|\bdon't use|\bno longer|\bremov(?:e|ing)|\bgive up|\baway from|\bno"
    r"|\breplac(?:e|ing)|不要|不用|而不是|不再用|去掉|放弃|先不|别用|不做) *([^,.;:，。；：]{2,60})|([\w\u3400-\u9fff]{2,20})先不",
    re.I,
)
"""What a decision turns down."""

FIXED_SAID = _table(
    r"\b(?:works|working|fixed|green|passes|passing|solved|resolved|gone) (?:now|again)\b|\bthat (?:did it|fixed it|works|helped)\b",
    r"\b(?:a )?(?:different|another|new) (?:one|error)\b|\b(?:it|everything|all) (?:works|is (?:green|fine))\b|\bmy (?:mistake|fault|bad)\b",
    r"好了|可以了|没问题了|解决了|通过了|正常了|不报错了|换了个错|另一个(?:错|报错)|不是同一个",
)
"""A user's word that what was reported is over."""

DONE = _table(
    r"^(?:all )?(?:done|fixed|committed|tagged|released|deployed|merged|pushed|finished|completed|implemented|published|reverted)\b",
    r"^(?:all|everything|the) .{0,30}\b(?:tests )?(?:pass(?:es|ed|ing)?|green)\b|\ball tests (?:pass|are green)",
    r"^(?:done|ok|good)[:,] |\b(?:works|is fixed|is done|is in place) now\b",
    r"^(?:已|全部|都|测试)(?:全部)?(?:完成|提交|通过|修复|上线|发布|部署|改为|修改)|^(?:完成|通过|修好|搞定)",
)
"""That something is done."""

LEAD_IN = _table(
    r"^(?:let me|i'll (?:look|check|start|read|take|first|begin|see|find|have)|looking|checking|first[,:]? (?:let|i)|now (?:let|i|the)|sure|ok(?:ay)?|good"
    r"|next|running|reading|measuring|writing|starting|let's (?:see|look|check))\b",
    r"^(?:让我|我先|我来|我看|先看|先|接下来|现在|好的|看看|再)",
)
"""How an assistant begins a step; no answer yet."""

OFFER = _table(
    r"\b(?:want|like|need) me to\b|\bshould i (?:also|go|proceed|continue|start|commit|open)\b|\bshall i\b|\banything else\b|\bready to\b",
    r"需要我|要不要我|还有(?:什么|别的)|要我(?:帮|继续)",
)
"""Questions that are over when the user goes on to something else."""
