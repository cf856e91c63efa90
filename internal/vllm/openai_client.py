#!/usr/bin/env python3
"""openai_client.py BASE_URL: the OpenAI client as an application uses it. Prints a JSON object for each call."""
import json
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="canary-credential", max_retries=0)
ASK = [{"role": "user", "content": "Say something."}]


def say(call: str, raw, **more) -> None:
    print(json.dumps({"call": call, "request_id": raw.headers["x-request-id"], "trace_id": raw.headers.get("x-trace-id"), **more}), flush=True)


raw = client.chat.completions.with_raw_response.create(model="tiny", messages=ASK, max_tokens=9)
answer = raw.parse()
say("json", raw, id=answer.id, prompt=answer.usage.prompt_tokens, output=answer.usage.completion_tokens)

raw = client.chat.completions.with_raw_response.create(
    model="tiny", messages=ASK, max_tokens=12, stream=True, stream_options={"include_usage": True})
chunks = list(raw.parse())
usage = chunks[-1].usage
say("stream", raw, id=chunks[0].id, prompt=usage.prompt_tokens, output=usage.completion_tokens)

raw = client.chat.completions.with_raw_response.create(
    model="tiny", messages=ASK, max_tokens=400, stream=True, extra_body={"ignore_eos": True})
stream = raw.parse()
first = next(iter(stream))
stream.close()
say("hung up", raw, id=first.id)

raw = client.completions.with_raw_response.create(model="renamed", prompt="import os", max_tokens=7)
answer = raw.parse()
say("renamed", raw, id=answer.id, prompt=answer.usage.prompt_tokens, output=answer.usage.completion_tokens, model=answer.model)

try:
    client.chat.completions.create(model="nobody-serves-this", messages=ASK)
except openai.NotFoundError as e:
    print(json.dumps({"call": "unknown model", "request_id": e.response.headers["x-request-id"], "code": e.status_code, "param": e.body["param"]}))
