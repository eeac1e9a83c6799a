"""The surface of the tasks: its methods and paths, like `herdr.web.routes` for the rest."""

from herdr.web.streams import Streams
from herdr.web.surface import Endpoint
from herdr.web.task_answers import TaskList, TaskView
from herdr.web.task_bodies import (
    AnswerBody,
    AskBody,
    CancelBody,
    ClaimNextBody,
    ClaimTaskBody,
    CreateTaskBody,
    EndBody,
    FinishBody,
    HandOverBody,
    ReleaseTaskBody,
    RenewTaskBody,
)
from herdr.web.task_desk import Board
from herdr.web.tasks_api import TasksApi

TASKS = "tasks"
"""The scope."""

FULL = "too many tasks or waiters, or the log cannot be written; try again after Retry-After"
UNKNOWN = {404: "there is no such task: it ended long ago, or never was"}
CREATED = {
    201: "the task is new",
    200: "the same request had created it before",
    409: "the id is another task's (`task_exists`)",
    503: FULL,
}
CLAIM_NEXT = {204: "no task of the role came within `wait_s`", 503: FULL}
CLAIM = {**UNKNOWN, 409: "another holds it (`task_held`), or it has ended or has too many steps"}
HOLDER = {
    **UNKNOWN,
    409: "the token is not its holder's (`fenced`), it has ended (`task_final`) or is full (`task_full`)",
}
ANSWER = {**UNKNOWN, 409: "nothing is asked (`no_question`), or it has ended or is full"}
CANCEL = {**UNKNOWN, 409: "it has ended (`task_final`)"}


def task_endpoints(board: Board, streams: Streams) -> list[Endpoint]:
    """Return the HTTP endpoints of the tasks."""
    api, one = TasksApi(board, streams), "/v1/tasks/{task}"
    named = [
        ("claim", api.claim, "Claim a task", ClaimTaskBody, CLAIM),
        ("renew", api.renew, "Renew the lease of a task", RenewTaskBody, HOLDER),
        ("hand-over", api.hand_over, "Hand a task over to another role", HandOverBody, HOLDER),
        ("ask", api.ask, "Ask something about a task", AskBody, HOLDER),
        ("answer", api.answer, "Answer what was asked", AnswerBody, ANSWER),
        ("release", api.release, "Give a task back to its role", ReleaseTaskBody, HOLDER),
        ("finish", api.finish, "Finish a task", FinishBody, HOLDER),
        ("fail", api.ending("failed"), "Say that a task cannot be done", EndBody, HOLDER),
        ("reject", api.ending("rejected"), "Say that a task should not be done", EndBody, HOLDER),
        ("cancel", api.cancel, "Cancel a task", CancelBody, CANCEL),
    ]
    return [
        Endpoint("POST", "/v1/tasks", TASKS, api.create, "Create a task", CreateTaskBody, TaskView, CREATED),
        Endpoint("GET", "/v1/tasks", TASKS, api.list, "List tasks", None, TaskList),
        Endpoint(
            "POST",
            "/v1/tasks/claim",
            TASKS,
            api.claim_next,
            "Claim the oldest task of a role",
            ClaimNextBody,
            TaskView,
            CLAIM_NEXT,
        ),
        Endpoint("GET", one, TASKS, api.get, "Read one task", None, TaskView, UNKNOWN),
        *(
            Endpoint("POST", f"{one}/{verb}", TASKS, handler, summary, body, TaskView, answers)
            for verb, handler, summary, body, answers in named
        ),
    ]
