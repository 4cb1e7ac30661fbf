/** Streams of live events end in time, by a clock that the test turns. */
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { afterEach, expect, it, vi } from "vitest";
import { LiveEvents } from "#coordinator/net/live-events";

afterEach(() => void vi.useRealTimers());

it("lets a listener go after five minutes: whoever comes back is asked again who it is", () => {
  vi.useFakeTimers();
  const events = new LiveEvents(
    async () => ({}),
    () => {},
  );
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  events.listen(response);

  vi.advanceTimersByTime(299_999);
  const before = response.writableEnded;
  vi.advanceTimersByTime(1);

  expect([before, response.writableEnded]).toEqual([false, true]);
});
