import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { beforeEach, describe, expect, it } from "vitest";
import { quietLog } from "#crawler/core/log";
import { pacesFrom } from "#crawler/limits/host-gate";
import { Moving, type MovingSettings } from "#crawler/move/moving";
import { arrivedFolder, PackReceiver, readPart, writePack } from "#crawler/move/pack";
import type { CrawlerMove } from "#protocol/move";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { until } from "../../support/until.ts";
import { arriveAll, type MoveGround, newMoveGround, spoolIn } from "./move-ground.ts";

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

it("takes no pack that it is not prepared for", async () => {
  const crawler = moving();

  crawler.onMessage({ type: "coordinator:move", moveId: 7, asks: take });

  await until(() => said.length > 0, 2000);
  expect(said[0]?.says).toEqual({ what: "failed", reason: "nothing was made ready for it" });
  expect(crawler.isWaiting()).toBe(false);
});

it("takes no pack of another move than the prepared one", async () => {
  const crawler = moving();
  crawler.onMessage({ type: "coordinator:move", moveId: 7, asks: { what: "make-ready", name: "athens" } });
  await until(() => said.some(({ says }) => says.what === "ready"), 2000);

  crawler.onMessage({ type: "coordinator:move", moveId: 8, asks: take });

  await until(() => said.length > 1, 2000);
  expect(said[1]).toMatchObject({ moveId: 8, says: { what: "failed" } });
});

/** What a crawler takes along arrives unchanged or not at all, whatever arrives instead. */
describe("packing", () => {
  let ground: MoveGround;
  beforeEach(() => {
    ground = newMoveGround();
  });

  describe("a pack", () => {
    it("brings the spool under its own id, and the longer wait of both hosts' paces", () => {
      const before = spoolIn(ground.from);

      arriveAll(ground);

      const paces = new Map(
        pacesFrom(
          JSON.parse(readFileSync(join(arrivedFolder(ground.to), "host-paces.json"), "utf8")),
          Date.now(),
        )!.hosts,
      );
      expect(spoolIn(arrivedFolder(ground.to))).toEqual({ ...before, waiting: 3 });
      expect([...paces.keys()].sort()).toEqual(["a.example", "b.example"]);
      expect(paces.get("a.example")!.notBeforeMs).toBeGreaterThan(Date.now() + 5_400_000);
    });

    it("leaves out what belongs to the machine and its host: keys, membership, settings, counts", () => {
      arriveAll(ground);

      for (const own of ["identity.json", "membership.json", "settings.toml", "day-count.json"])
        expect(existsSync(join(arrivedFolder(ground.to), own)), own).toBe(false);
    });
  });

  describe("parts that differ from what was announced", () => {
    function receiving() {
      const pack = writePack(ground.from, { withResults: true });
      return { pack, part: readPart(ground.from, 0), receiver: new PackReceiver(ground.to, pack) };
    }

    it("with one changed byte are detected by their digest", () => {
      const { part, receiver } = receiving();
      const changed = Buffer.from(part, "base64");
      changed[changed.length - 1]! ^= 1;

      receiver.add(0, changed.toString("base64"));

      expect(() => receiver.finish()).toThrow(/not what was signed/);
    });

    it("in the wrong order, one too many, too short or too long are refused", () => {
      const { part, receiver } = receiving();

      expect(() => receiver.add(1, part)).toThrow(/part 1 came, 0 was due/);
      expect(() => receiver.add(0, part.slice(0, -8))).toThrow(/bytes were due|were due/);
      expect(() => receiver.add(0, Buffer.from(`${part}AAAA`).toString("base64"))).toThrow(/were due/);
      receiver.add(0, part);
      expect(() => receiver.add(1, part)).toThrow(/part 1 came, none was due/);
    });

    it("that end early are not a pack", () => {
      const { receiver } = receiving();

      expect(() => receiver.finish()).toThrow(/part 0 has not come/);
    });
  });

  describe("a pack that is signed but hostile", () => {
    const longName = "results-0000000000000001.log";
    const crafted: readonly (readonly [string, unknown, string, RegExp])[] = [
      [
        "names a file of somebody else's",
        [{ name: "../../etc/passwd", bytes: 1 }],
        "x",
        /list of a crawler's files/,
      ],
      [
        "names the identity",
        [file("spool/id", 1), file("identity.json", 1)],
        "xx",
        /list of a crawler's files/,
      ],
      ["names a file twice", [file("spool/id", 1), file("spool/id", 1)], "xx", /list of a crawler's files/],
      ["has no spool", [file("host-paces.json", 2)], "{}", /list of a crawler's files/],
      ["goes on beyond its end", [file("spool/id", 1_000_000)], "x", /beyond the end/],
      ["has bytes to spare", [file("spool/id", 1)], "xxxx", /not as long/],
      ["is no list", "nothing", "", /list of a crawler's files/],
      [
        "has a spool that is none",
        [file("spool/id", 36), file(`spool/${longName}`, 200)],
        `${"0".repeat(36)}${"z".repeat(200)}`,
        /the spool that arrived/,
      ],
    ];

    it.each(crafted)("%s", (_what, list, content, words) => {
      const bytes = packOf(list, Buffer.from(content));
      const digest = createHash("sha256").update(bytes).digest("hex");
      const receiver = new PackReceiver(ground.to, { bytes: bytes.length, digest });
      receiver.add(0, bytes.toString("base64"));

      expect(() => receiver.finish()).toThrow(words);
      expect(spoolIn(ground.to).waiting).toBe(0);
    });

    it("is refused with a result whose checksum is right but whose content is invalid", () => {
      const payload = Buffer.from([2, 0]);
      const record = Buffer.alloc(16 + payload.length);
      record.writeUInt32LE(payload.length, 0);
      record.writeBigUInt64LE(1n, 8);
      payload.copy(record, 16);
      record.writeUInt32LE(crc32(record.subarray(8)), 4);
      const id = Buffer.from("00000000-0000-4000-8000-000000000001");
      const list = [file("spool/id", id.length), file(`spool/${longName}`, record.length)];
      const bytes = packOf(list, Buffer.concat([id, record]));
      const digest = createHash("sha256").update(bytes).digest("hex");
      const receiver = new PackReceiver(ground.to, { bytes: bytes.length, digest });
      receiver.add(0, bytes.toString("base64"));

      expect(() => receiver.finish()).toThrow(/the spool that arrived/);
    });
  });

  function file(name: string, bytes: number) {
    return { name, bytes };
  }

  function packOf(list: unknown, content: Buffer): Buffer {
    const text = Buffer.from(JSON.stringify(list));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(text.length);
    return Buffer.concat([length, text, content]);
  }
});
