"""The executor port with threads, which are started when they are first needed."""

from concurrent.futures import ThreadPoolExecutor


def thread_executor(name: str, threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix=f"riverlog-{name}")
