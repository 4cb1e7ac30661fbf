/** The report as text for administrators. */
import { describe, expect, it } from "vitest";
import { durationInWords, stateWords } from "#crawler/status/running-report";
import { statusPage } from "#crawler/status/status-page";
import { statusText } from "#crawler/status/status-text";
import { failure, sampleReport } from "./sample-report.ts";

const textOf = (...given: Parameters<typeof sampleReport>) => statusText(sampleReport(...given)).join("\n");

describe("the status in words", () => {
  it("says first what the crawler does, then for whom and as what", () => {
    const lines = statusText(sampleReport());

    expect(lines[0]).toBe("amber: Crawling: 2 sites open, 7 URLs in the last minute.");
    expect(lines).toContain("coordinator       wss://search.example/crawler");
    expect(lines).toContain("link              connected for 4 min");
    expect(lines).toContain("identity          abcdefghijkl…");
    expect(lines).toContain("seen at           192.0.2.7");
    expect(lines).toContain("under             supervisor 1, Node 20.20.2, protocol 3");
    expect(lines).toContain("runs              for 3 h 20 min, process 77");
  });

  it("shows use against each limit that there is, and when it starts over", () => {
    const text = textOf();

    expect(text).toContain("  Pages today       [#####...............] 50 of 200 pages, starts over in 11 h");
    expect(text).toContain("  Bytes this month                         1 KiB, no limit");
    expect(text).not.toContain("Memory");
  });

  it("names what holds the crawler back, and says so where nothing does", () => {
    const held = "the day's 200 pages are used up";
    const [, pages, ...others] = sampleReport().limits;
    const limits = [{ ...pages!, used: 200, holdingBack: held }, ...others];

    const text = textOf({ holdingBack: [held], limits });

    expect(textOf()).toContain("Nothing holds it back.");
    expect(text).toContain(`What holds it back right now:\n  - ${held}`);
    expect(text).toContain("[####################] 200 of 200 pages, starts over in 11 h  <- holds it back");
  });

  it("counts errors by blame, and those that say the same in one line", () => {
    const other = { ...failure, host: "b.example", blame: "network" as const, code: "connect-timeout" };
    const latest = [failure, failure, failure, other, failure];

    const text = textOf({ errors: { today: { target: 4, network: 1, crawler: 0, us: 0 }, latest } });

    expect(text).toContain(
      "Errors today: 4 of sites, 1 of the network, 0 of this machine, 0 of our software.",
    );
    expect(text.match(/a\.example/g)).toHaveLength(2);
    expect(text).toContain("a.example: the certificate has expired (tls), 3 times in a row");
    expect(text).toContain("network  b.example");
  });

  it("tells of releases that were not taken, and of ends that nobody had asked for", () => {
    const text = textOf({ lastEnds: [{ at: failure.at, reason: "it was ended by SIGKILL" }] });

    expect(text).toContain("release           1.4.0 (new, and watched)");
    expect(text).toContain("not taken         1.5.0 (pinned): the partner refuses this version");
    expect(text).toContain("  2026-11-22 12:59 UTC  it was ended by SIGKILL");
  });

  it("lets no words from outside steer the terminal", () => {
    const words = "gone\u001b[2J\u0007\u202eforged";

    const text = textOf({
      holdingBack: [words],
      errors: {
        today: { target: 1, network: 0, crawler: 0, us: 0 },
        latest: [{ ...failure, words, host: words }],
      },
    });

    for (const character of "\u001b\u0007\u202e") expect(text).not.toContain(character);
    expect(text).toContain("gone [2J forged");
  });

  it("says for how long the coordinator has not been reached", () => {
    const { coordinator, at } = sampleReport();
    const then = new Date(Date.parse(at) - 12 * 60_000).toISOString();
    const notConnectedBecause = "no link to the coordinator: nothing heard from the coordinator for 25 s";
    const down = { ...coordinator, connectedSince: null, notConnectedSince: then, notConnectedBecause };

    expect(textOf({ coordinator: down })).toContain(`${notConnectedBecause}, for 12 min`);
  });

  it.each([
    ["waiting", "Connected, with nothing open: outside the hours."],
    ["not-connected", "Not connected: no link to the coordinator: refused."],
    ["paused", "Paused: backup."],
    [
      "draining",
      "Draining, to leave for good: the machine goes away. 2 sites are still open, 1 result waits for the coordinator.",
    ],
  ] as const)("says of a crawler that is %s why", (state, sentence) => {
    const at = "2026-11-22T12:00:00.000Z";
    const notConnectedBecause = "no link to the coordinator: refused";
    const report = sampleReport({
      state,
      holdingBack: ["outside the hours"],
      pause: { since: at, reason: "backup" },
      drain: { since: at, reason: "the machine goes away" },
      coordinator: { ...sampleReport().coordinator, notConnectedBecause },
    });

    expect(stateWords(report)).toBe(sentence);
  });

  it("says times as people do", () => {
    const minute = 60_000;

    expect([900, 4 * minute, 200 * minute, 120 * minute, 72 * 60 * minute].map(durationInWords)).toEqual([
      "1 s",
      "4 min",
      "3 h 20 min",
      "2 h",
      "3 days",
    ]);
  });
});

it("the pace that the coordinator asks for is told, as text and on the page", () => {
  const reason = "3 host slices due or in hand, under 4: fewer connections will do";
  const pace = { pace: "slow-down", places: 4, since: "2026-11-22T12:00:00.000Z", reason } as const;
  const words = `slow down: 4 sites at a time, since 2026-11-22 12:00 UTC (${reason})`;
  const work = { ...sampleReport().work!, pace };

  expect(textOf({ work })).toContain(words);
  expect(statusPage(sampleReport({ work }))).toContain(words);
  expect(textOf()).not.toContain("at a time");
});
