"""Pure: what one step makes of a task. The table's decisions go through it just as the log's events do."""

from msgspec.structs import replace

from herdr.tasks.task import New, Note, Step, Task

FIELDS_BYTES = 300  # of a task or a step beside its texts, in the log and (twice that) in memory


def begin(new: New, step: Step) -> Task:
    """Return a new task."""
    texts = (new.task, new.title, new.description, new.role, new.by)
    return Task(
        task=new.task,
        title=new.title,
        description=new.description,
        workspace=new.workspace,
        session=new.session,
        state=step.state,
        role=new.role,
        created_by=new.by,
        created_us=step.at_us,
        updated_us=step.at_us,
        updated=step.seq,
        steps=(step,),
        size=FIELDS_BYTES + sum(map(len, texts)) + size_of(step),
    )


def after(task: Task, step: Step) -> Task:
    """Return the task after a step; the task itself when the step is void."""
    if step.what == "renewed":
        return replace(task, renewed=step.seq, ttl_s=step.ttl_s or task.ttl_s)
    if step.what == "returned" and (step.saw or 0) < task.renewed:
        return task
    holds = step.state in ("working", "input_required")
    asks = step.state == "input_required"
    return replace(
        task,
        state=step.state,
        role=step.role,
        updated_us=step.at_us,
        updated=step.seq,
        steps=(*task.steps, step),
        holder=step.holder if holds else None,
        token=step.token if holds else None,
        ttl_s=step.ttl_s or task.ttl_s,
        ask=(step.ask if step.what == "claimed" else task.ask) if holds else None,
        renewed=step.seq if step.what == "claimed" else task.renewed,
        question=step.text if asks else None,
        asked=step.to if asks else None,
        size=task.size + size_of(step),
    )


def size_of(step: Step) -> int:
    """Return about how many bytes a step takes."""
    return FIELDS_BYTES + len(step.text or "") + (0 if step.note is None else size_of_note(step.note))


def size_of_note(note: Note) -> int:
    """Return about how many bytes a note takes."""
    items = (*note.decisions, *note.files, *note.artifacts, *note.open_questions)
    return len(note.summary) + sum(len(item) + 4 for item in items)
