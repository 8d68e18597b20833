"""Spark's own checkpoint on a local disk, without a process per file.

Where Hadoop's native library is missing (as in the ``pyspark`` package), Hadoop sets the permissions of each
file that it creates on a local disk by starting ``chmod``: about ten milliseconds for each of the three or
more files of a batch, and more per file source. A file system of our own scheme is the same but for that; new
files have the permissions that the umask gives them, as elsewhere. Only the driver reads and writes there.

The class is compiled in the driver by the compiler that Spark brings for its own code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

SCHEME = "levelwind-local"
NAME = "levelwind.LocalFiles"
JAVA = f"""
package levelwind;

public class LocalFiles extends org.apache.hadoop.fs.RawLocalFileSystem {{
  public String getScheme() {{ return "{SCHEME}"; }}
  public java.net.URI getUri() {{ return java.net.URI.create("{SCHEME}:///"); }}
  public void setPermission(
      org.apache.hadoop.fs.Path path, org.apache.hadoop.fs.permission.FsPermission permission) {{}}
}}
"""


def checkpoint_address(session: SparkSession, directory: Path) -> str:
    """The address by which Spark shall know a local directory: a quick one, or the plain path."""
    configuration: Any = session.sparkContext._jsc.hadoopConfiguration()
    try:
        if configuration.get(f"fs.{SCHEME}.impl") is None:
            compiler = session.sparkContext._jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(configuration.getClassLoader())
            compiler.cook(JAVA)
            configuration.setClassLoader(compiler.getClassLoader())
            configuration.set(f"fs.{SCHEME}.impl", NAME)
        # Asked for here, so that whatever is wrong with it shows now and not within the query.
        address = f"{SCHEME}://{directory.absolute()}"
        path = session.sparkContext._jvm.org.apache.hadoop.fs.Path(address)
        path.getFileSystem(configuration).exists(path)
    except (Py4JError, PySparkException):
        return str(directory)
    return address
