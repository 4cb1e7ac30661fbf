/** Signs of a machine: memory, idleness, power, users, connections, disk, its own networks. */
import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import {
  DiskWatch,
  IdleWatch,
  type MachineSigns,
  MemoryWatch,
  readMachineSigns,
  youngMegabytes,
} from "#crawler/limits/machine-watch";
import { ConnectionSlots } from "#crawler/limits/shares";
import { addressGuard } from "#crawler/net/address-guard";
import { ownNetworks } from "#crawler/net/connector";
import { temporaryFolder } from "../../support/temporary-folder.ts";

let folder: string;
beforeEach(() => {
  folder = temporaryFolder("nearcrawl-machine-");
});

function put(path: string, content: string | Buffer): string {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), content);
  return join(folder, path);
}

const now = new Date("2026-11-22T12:00:00Z");
const signsHere = () =>
  readMachineSigns(
    {
      powerSupplies: join(folder, "power"),
      utmp: [join(folder, "none"), join(folder, "utmp")],
      devices: join(folder, "dev"),
    },
    now,
  );

/** utmp(5) of 64-bit Linux: 384 bytes with the type and the terminal's name. */
function session(type: number, line: string): Buffer {
  const record = Buffer.alloc(384);
  record.writeInt16LE(type, 0);
  record.write(line, 8);
  return record;
}

describe("a machine's signs", () => {
  it("are unknown where the system has none", () => {
    expect(signsHere()).toMatchObject({ onMainsPower: null, usersAwayMinutes: null });
  });

  it.each([
    [
      "a laptop on its battery",
      { "AC/type": "Mains", "AC/online": "0", "B/type": "Battery", "B/status": "Discharging" },
      false,
    ],
    [
      "a laptop on mains",
      { "AC/type": "Mains", "AC/online": "1", "B/type": "Battery", "B/status": "Full" },
      true,
    ],
    ["a server", {}, true],
    ["a mouse with a battery", { "M/type": "Battery", "M/status": "Discharging", "M/scope": "Device" }, true],
  ])("give the power state of %s", (_what, files, expected) => {
    mkdirSync(join(folder, "power"));
    for (const [path, text] of Object.entries(files)) put(`power/${path}`, `${text}\n`);

    expect(signsHere().onMainsPower).toBe(expected);
  });

  it("give how long the last user has been away, and that one at a screen is present", () => {
    put("utmp", Buffer.concat([session(2, "~"), session(7, "pts/0"), session(8, "pts/9")]));
    const terminal = put("dev/pts/0", "");
    utimesSync(terminal, new Date("2026-11-22T11:48:00Z"), now);

    const away = signsHere().usersAwayMinutes;
    put("utmp", Buffer.concat([session(7, "pts/0"), session(7, ":0")]));

    expect([away, signsHere().usersAwayMinutes]).toEqual([12, 0]);
  });

  it("say that nobody is logged in", () => {
    put("utmp", session(2, "~"));

    expect(signsHere().usersAwayMinutes).toBe(Number.POSITIVE_INFINITY);
  });
});

describe("only when idle", () => {
  const idle: MachineSigns = { load: 0.2, processors: 4, onMainsPower: true, usersAwayMinutes: 30 };
  const limits = { loadPerProcessor: 0.5, onMainsPower: true, usersAwayMinutes: 10 };
  const watchOf = (signs: Partial<MachineSigns>, ownLoad = 0) =>
    new IdleWatch(limits, { signs: () => ({ ...idle, ...signs }), ownLoad: () => ownLoad, nowMs: () => 0 });

  it.each([
    [{}, ""],
    [{ load: 3 }, "the machine has other work: a load of 0.75 per processor, and 0.5 is allowed"],
    [{ onMainsPower: false }, "the machine runs on its battery"],
    [{ usersAwayMinutes: 3.5 }, "somebody uses the machine, or did 3 minutes ago; 10 are waited for"],
    [{ load: null, onMainsPower: null, usersAwayMinutes: null }, ""],
  ])("with %j says: %s", (signs, words) => {
    expect(watchOf(signs).usage().holdingBack).toBe(words);
  });

  it("names the signs that the system lacks", () => {
    expect(watchOf({ onMainsPower: null, usersAwayMinutes: null }).untold()).toEqual([
      "this system does not tell whether it runs on its battery",
      "this system does not tell whether anybody uses it",
    ]);
  });

  it("does not stop for the crawler's own load", () => {
    let nowMs = 0;
    const signs = () => ({ ...idle, load: 2.4 });
    const watch = new IdleWatch(limits, { signs, ownLoad: () => 1, nowMs: () => nowMs });
    const first = watch.isIdle();

    for (nowMs = 10_000; nowMs <= 300_000; nowMs += 10_000) watch.isIdle();

    expect([first, watch.isIdle()]).toEqual([false, true]);
  });
});

describe("memory", () => {
  it("near its limit reduces hosts, then allows one request at a time, and collects garbage", () => {
    let bytes = 0;
    let nowMs = 0;
    let collected = 0;
    const signs = { residentBytes: () => bytes, collect: () => void collected++, nowMs: () => nowMs };
    const memory = new MemoryWatch(1000, signs);
    const at = (used: number) => {
      bytes = used;
      nowMs += 2000;
      return [memory.hosts(32), memory.isShort()];
    };

    expect(at(500)).toEqual([32, false]);
    expect(at(875)).toEqual([16, false]);
    expect(at(960)).toEqual([1, true]);
    expect(memory.usage().holdingBack).toBe(
      "960 bytes of 1000 bytes of memory are used: pages are fetched one by one",
    );
    expect(at(300)).toEqual([32, false]);
    expect(collected).toBe(1);
  });

  it("leaves extraction half a gigabyte when there is that much, or no limit", () => {
    const gibibyte = 1024 ** 3;

    expect([null, gibibyte / 2, gibibyte / 2 - 1].map(youngMegabytes)).toEqual([48, 48, 8]);
  });

  it("has a collector that works", () => {
    expect(new MemoryWatch(1, undefined).hosts(8)).toBe(1);
  });
});

describe("open connections", () => {
  it("are waited for in order when all are taken, including the coordinator's", async () => {
    const slots = new ConnectionSlots(4);
    const ends = await Promise.all([slots.take(10), slots.take(10), slots.take(10)]);
    const order: string[] = [];
    const waiting = ["first", "second"].map((name) =>
      slots.take(60_000).then((end) => {
        order.push(name);
        return end;
      }),
    );

    expect(slots.usage().holdingBack).toBe("all 4 connections are open, and 2 more are waited for");
    ends[0]?.();
    (await waiting[0])?.();
    await waiting[1];

    expect(order).toEqual(["first", "second"]);
    expect(slots.usage()).toMatchObject({ used: 4, cap: 4, holdingBack: "" });
  });

  it("that are not free in time are given up", async () => {
    const slots = new ConnectionSlots(2);
    await slots.take(10);

    expect(await slots.take(1)).toBeNull();
    expect(slots.usage().holdingBack).toBe("");
  });

  it("above a lowered limit end normally and are not replaced", async () => {
    const slots = new ConnectionSlots(10);
    const ends = await Promise.all([slots.take(10), slots.take(10), slots.take(10)]);

    slots.apply(3);
    ends[0]?.();

    expect(await slots.take(1)).toBeNull();
    ends[1]?.();
    expect(await slots.take(1)).not.toBeNull();
  });
});

describe("the disk", () => {
  it("counts everything in the folder, and leaves the rest to the spool", async () => {
    const mebibyte = 1024 * 1024;
    put("releases/one.mjs", Buffer.alloc(3 * mebibyte));
    put("spool/results-1.log", Buffer.alloc(2 * mebibyte));
    let spooled = 2 * mebibyte;
    const limits = { diskBytes: 10 * mebibyte, spoolBytes: 256 * mebibyte };
    const disk = new DiskWatch(limits, { home: folder, spoolBytes: () => spooled });
    await disk.look();

    expect(disk.usage().used).toBe(5 * mebibyte);
    expect(disk.spoolMostBytes()).toBe(6 * mebibyte);
    expect(disk.isFull()).toBe(false);
    spooled = 6 * mebibyte;
    expect(disk.usage().holdingBack).toBe("the crawler's folder has 9 MiB, and 10 MiB are allowed");
    disk.close();
  });
});

describe("the machine's own networks", () => {
  const face = (cidr: string, internal = false) => ({ cidr, internal }) as never;
  const interfaces = {
    lo: [face("127.0.0.1/8", true)],
    eth0: [face("198.41.0.9/24"), face("fe80::1/64"), face("2a00:1450::7/64")],
    eth1: [face("10.1.2.3/16")],
  };

  it("are its interfaces' public ones", () => {
    expect(ownNetworks(interfaces)).toEqual(["198.41.0.0/24", "2a00:1450::/64"]);
  });

  it("are not contacted, even as mapped addresses, unless they are allowed", () => {
    const lists = { allowRanges: [], denyRanges: [], denyDomains: [], ownNetworks: ownNetworks(interfaces) };
    const guard = addressGuard(lists);
    const open = addressGuard({ ...lists, allowRanges: ["198.41.0.8/30"] });

    expect(guard.denial({ address: "198.41.0.8" })).toBe("198.41.0.8 is in the crawler's own network");
    expect(guard.refusal("::ffff:198.41.0.8")).not.toBeNull();
    expect(guard.refusal("198.41.1.8")).toBeNull();
    expect(open.refusal("198.41.0.8")).toBeNull();
    expect(open.refusal("198.41.0.200")).toBe("the crawler's own network");
  });
});
