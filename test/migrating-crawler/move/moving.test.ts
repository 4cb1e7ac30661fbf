import { beforeEach, expect, it } from "vitest";
import { quietLog } from "#crawler/core/log";
import { Moving, type MovingSettings } from "#crawler/move/moving";
import type { CrawlerMove } from "#protocol/move";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/until.ts";

let home: string;
let said: CrawlerMove[];
beforeEach(() => {
  home = temporaryFolder("nearcrawl-moving-");
  said = [];
});

function moving(): Moving {
  const idle: Pick<MovingSettings, "tools" | "loop" | "carrier" | "spool"> = {
    tools: {
      connector: { close: () => {} },
      gates: { close: () => {} },
      robots: { close: () => {} },
    } as unknown as MovingSettings["tools"],
    loop: { stop: async () => {}, openHosts: 0 },
    carrier: { drained: async () => {} },
    spool: { waiting: 0 },
  };
  const link = { send: (message: CrawlerMove) => said.push(message) > 0, seal: () => {} };
  return new Moving({
    home,
    member: null,
    ...idle,
    link: link as unknown as MovingSettings["link"],
    log: quietLog,
    beginAnew: () => {},
  });
}

const take = { what: "take", bytes: 10, digest: "a".repeat(64) } as const;

it("takes no pack for which it has made nothing ready", async () => {
  const crawler = moving();

  crawler.onMessage({ type: "coordinator:move", moveId: 7, asks: take });

  await until(() => said.length > 0, 2000);
  expect(said[0]?.says).toEqual({ what: "failed", reason: "nothing was made ready for it" });
  expect(crawler.isWaiting()).toBe(false);
});

it("takes no pack of another move than the one that it has made ready for", async () => {
  const crawler = moving();
  crawler.onMessage({ type: "coordinator:move", moveId: 7, asks: { what: "make-ready", name: "athens" } });
  await until(() => said.some(({ says }) => says.what === "ready"), 2000);

  crawler.onMessage({ type: "coordinator:move", moveId: 8, asks: take });

  await until(() => said.length > 1, 2000);
  expect(said[1]).toMatchObject({ moveId: 8, says: { what: "failed" } });
});
