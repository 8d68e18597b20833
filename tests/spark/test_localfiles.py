"""Spark's checkpoint on a local disk: written without a process per file, and readable by any other way."""

import os
import stat

import pytest

from levelwind.spark import localfiles
from levelwind.spark.localfiles import SCHEME, checkpoint_address
from levelwind.spark.session import start_session

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def spark():
    session = start_session("local[1]")
    yield session
    session.stop()


@pytest.fixture
def files(spark, tmp_path):
    """The quick file system of a directory, and a way to name paths in it."""
    address = checkpoint_address(spark, tmp_path)
    assert address == f"{SCHEME}://{tmp_path}"
    jvm = spark.sparkContext._jvm

    def path(name):
        return jvm.org.apache.hadoop.fs.Path(f"{address}/{name}")

    system = path("").getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    return system, path


def test_what_it_writes_is_there_with_the_usual_permissions(files, tmp_path):
    system, path = files
    out = system.create(path("a/b"))
    out.write(bytearray(b"rows"))
    out.close()
    assert system.rename(path("a/b"), path("a/c"))
    assert [entry.name for entry in (tmp_path / "a").iterdir()] == ["c"]
    assert (tmp_path / "a" / "c").read_bytes() == b"rows"
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "a" / "c").stat().st_mode) == 0o666 & ~mask


def test_it_leaves_permissions_alone_instead_of_starting_chmod(spark, files, tmp_path):
    system, path = files
    system.create(path("a")).close()
    before = (tmp_path / "a").stat().st_mode
    mine_alone = spark.sparkContext._jvm.org.apache.hadoop.fs.permission.FsPermission("600")
    system.setPermission(path("a"), mine_alone)
    assert (tmp_path / "a").stat().st_mode == before


def test_where_it_cannot_be_made_the_plain_path_does(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(localfiles, "SCHEME", "levelwind-broken")
    monkeypatch.setattr(localfiles, "JAVA", "no java at all")
    assert checkpoint_address(spark, tmp_path) == str(tmp_path)
