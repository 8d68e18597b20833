"""Of Spark's notes of files, those that no batch was planned with are forgotten, and nothing else is."""

from __future__ import annotations

import pytest

from levelwind.spark.filelog import forget_unplanned


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def note(folder, source, *names):
    for name in names:
        entry = f'{{"path":"file:///in/{name}","timestamp":1,"batchId":{name.removesuffix(".compact")}}}'
        write(folder / "sources" / str(source) / name, f"v1\n{entry}")


def plan(folder, batch, *offsets):
    write(folder / "offsets" / str(batch), "\n".join(("v1", "{}", *offsets)))


def left(folder):
    return sorted(str(path.relative_to(folder / "sources")) for path in folder.glob("sources/*/*"))


def test_notes_beyond_the_last_planned_batch_go(tmp_path):
    note(tmp_path, 0, "7", "8", "9.compact")
    note(tmp_path, 1, "9.compact", "10")
    note(tmp_path, 2, "0")
    write(tmp_path / "sources" / "0" / ".9.compact.crc", "sum")
    plan(tmp_path, 9, '{"logOffset":7}', '{"logOffset":9}', "-")
    plan(tmp_path, 10, '{"logOffset":8}', '{"logOffset":10}', "-")
    forgotten = forget_unplanned(tmp_path)
    assert sorted(path.name for path in forgotten) == ["0", "9.compact"]
    assert left(tmp_path) == ["0/7", "0/8", "1/10", "1/9.compact"]


def test_before_the_first_batch_is_planned_all_notes_of_files_go(tmp_path):
    note(tmp_path, 0, "0")
    forget_unplanned(tmp_path)
    assert left(tmp_path) == []


@pytest.mark.parametrize("text", ['v1\n{"topic":{"0":17}}', "v1\n1700000000", "", "v1"])
def test_what_other_sources_keep_there_stays(tmp_path, text):
    write(tmp_path / "sources" / "0" / "0", text)
    forget_unplanned(tmp_path)
    assert left(tmp_path) == ["0/0"]


def test_there_may_be_nothing_yet(tmp_path):
    assert forget_unplanned(tmp_path / "spark") == []
