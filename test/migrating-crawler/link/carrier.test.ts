import { rmSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { quietLog } from "#crawler/core/log";
import { Carrier } from "#crawler/link/carrier";
import { Spool } from "#crawler/spool/spool";
import { unpackMessage } from "#protocol/packed/unpack-message";
import type { FetchResult } from "#protocol/result";
import { temporaryFolder } from "../../support/temporary-folder.ts";

/** The link's side that the carrier sees: takes everything while it is up, and remembers in which order. */
class RecordingLink {
  isUp = true;
  sent: number[] = [];

  sendResult({ sequence }: { sequence: number }): boolean {
    if (!this.isUp) return false;
    this.sent.push(sequence);
    return true;
  }
}

const notFound: FetchResult = {
  url: "http://site.example/missing",
  fetchedAt: "2026-01-01T00:00:00.000Z",
  outcome: { type: "http-error", status: 404, retryAfterSeconds: null },
  address: null,
  timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 5 },
  wireBytes: 0,
  bodyBytes: 0,
  etag: null,
  lastModified: null,
  hostDelayMs: 0,
  page: null,
};

let home: string;
let spool: Spool;
let link: RecordingLink;
let carrier: Carrier;

beforeEach(() => {
  home = temporaryFolder("nearcrawl-carrier-");
  spool = new Spool({ home, maxBytes: 1_000_000 });
  link = new RecordingLink();
  carrier = new Carrier({ spool, link, log: quietLog });
});

afterEach(() => {
  spool.close();
  rmSync(home, { recursive: true, force: true });
});

describe("the carrier", () => {
  it("ships results in order and each once in a session", () => {
    carrier.onWelcome(0);

    for (let count = 0; count < 3; count += 1) carrier.keep("1", notFound);

    expect(link.sent).toEqual([1, 2, 3]);
  });

  it("begins a new session with the first result that the coordinator does not have", () => {
    carrier.onWelcome(0);
    for (let count = 0; count < 5; count += 1) carrier.keep("1", notFound);
    link.isUp = false;
    carrier.keep("1", notFound);
    link.sent = [];
    link.isUp = true;

    carrier.onWelcome(2);

    expect(link.sent).toEqual([3, 4, 5, 6]);
  });

  it("lets a lease settle when its last result is acknowledged, and not before", async () => {
    carrier.onWelcome(0);
    carrier.keep("7", notFound);
    carrier.keep("7", notFound);
    let settled = false;
    const waiting = carrier.settled("7").then(() => {
      settled = true;
    });

    carrier.onAcknowledge(1);
    await Promise.resolve();
    const early = settled;
    carrier.onAcknowledge(2);
    await waiting;

    expect([early, settled]).toEqual([false, true]);
  });

  it("says when results wait and nothing has been acknowledged for minutes", () => {
    const later = (minutes: number) => performance.now() + minutes * 60_000 + 1000;
    carrier.onWelcome(0);
    const idle = carrier.stuck(later(60));
    carrier.keep("1", notFound);
    carrier.keep("1", notFound);

    const early = carrier.stuck(later(4));
    const late = carrier.stuck(later(7));
    carrier.onAcknowledge(2);

    expect([idle, early]).toEqual(["", ""]);
    expect(late).toBe("nothing was acknowledged for 7 minutes; 2 results wait");
    expect(carrier.stuck(later(60))).toBe("");
  });

  it("ships times in tenths of a millisecond", () => {
    const timing = { dnsMs: 1.23456, connectMs: null, tlsMs: 0.04, firstByteMs: 99.96, totalMs: 100.0499 };

    carrier.keep("1", { ...notFound, timing });
    const kept = unpackMessage(spool.read(1)!.packed) as { result: FetchResult };

    expect(kept.result.timing).toEqual({
      dnsMs: 1.2,
      connectMs: null,
      tlsMs: 0,
      firstByteMs: 100,
      totalMs: 100,
    });
  });
});
