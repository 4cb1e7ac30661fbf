/** Results on disk: what survives which failure, and what is removed when. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { UsageError } from "#core/errors";
import { frame, Spool, type SpooledResult } from "#crawler/spool/spool";
import { packResult } from "#protocol/packed/message-frames";
import { unpackMessage } from "#protocol/packed/unpack-message";
import { type FetchResult, failedResult } from "#protocol/result";
import { atEnd } from "../../support/at-end.ts";
import { builtDoors } from "../../support/built-command.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

function freshHome(): string {
  return temporaryFolder("nearcrawl-spool-");
}

function open(home: string, maxBytes = 64 * 1024 * 1024): Spool {
  const spool = new Spool({ home, maxBytes });
  atEnd(() => {
    try {
      spool.close();
    } catch {}
  });
  return spool;
}

function result(number: number, excerpt = ""): FetchResult {
  const outcome = { type: "failed", blame: "target", code: "tls", reason: excerpt } as const;
  return { ...failedResult({ url: `https://site.example/${number}`, timing: { totalMs: 1 } }, ""), outcome };
}

const packed = (number: number, excerpt = "") => packResult("7", result(number, excerpt));

function resultOf(spooled: SpooledResult | null): FetchResult | undefined {
  return spooled ? (unpackMessage(spooled.packed) as { result: FetchResult }).result : undefined;
}

const filesOf = (home: string) => readdirSync(join(home, "spool")).filter((name) => name.endsWith(".log"));
const urlsOf = (spool: Spool) => {
  const urls: (string | undefined)[] = [];
  for (let at = spool.first; at !== null && at <= spool.last!; at++) urls.push(resultOf(spool.read(at))?.url);
  return urls;
};

describe("a spool", () => {
  it("numbers results from one, and returns them by number", () => {
    const spool = open(freshHome());

    expect([1, 2, 3].map((number) => spool.append("7", packed(number)))).toEqual([1, 2, 3]);

    expect(spool).toMatchObject({ waiting: 3, first: 1, last: 3 });
    expect(spool.read(2)).toMatchObject({ sequence: 2, leaseId: "7" });
    expect(resultOf(spool.read(2))).toEqual(result(2));
    expect(spool.read(4)).toBeNull();
  });

  it("keeps its name, its results and its numbering across a restart", () => {
    const home = freshHome();
    const before = open(home);
    before.append("7", packed(1));
    before.append("7", packed(2));
    before.close();

    const after = open(home);

    expect(after.id).toBe(before.id);
    expect(urlsOf(after)).toEqual([result(1).url, result(2).url]);
    expect(after.append("7", packed(3))).toBe(3);
  });

  it("never uses a number twice, even when everything was acknowledged before the restart", () => {
    const home = freshHome();
    const before = open(home);
    for (let number = 1; number <= 300; number++) before.append("7", packed(number, "x".repeat(5000)));
    before.acknowledge(300);
    before.close();

    const after = open(home);

    expect(after.append("7", packed(301))).toBe(301);
  });

  it("continues after the coordinator's last number when its own tail was lost", () => {
    const spool = open(freshHome());
    spool.append("7", packed(1));

    spool.acknowledge(50);

    expect(spool.append("7", packed(2))).toBe(51);
    expect(spool).toMatchObject({ waiting: 1, first: 51 });
    expect(resultOf(spool.read(51))).toEqual(result(2));
  });

  it("removes files whose results are all acknowledged", () => {
    const home = freshHome();
    const spool = open(home);
    for (let number = 1; number <= 30; number++) spool.append("7", packed(number, "x".repeat(1_000_000)));
    const full = filesOf(home).length;

    spool.acknowledge(29);
    const oneLeft = filesOf(home).length;
    spool.acknowledge(30);

    expect(full).toBeGreaterThanOrEqual(4);
    expect(oneLeft).toBe(1);
    expect(spool.bytes).toBeLessThan(2_000_000);
    expect(spool.first).toBeNull();
  });

  it("keeps no acknowledged result of erased pages, and no waiting one once it is acknowledged", () => {
    const home = freshHome();
    const spool = open(home);
    const onDisk = () =>
      filesOf(home)
        .map((name) => readFileSync(join(home, "spool", name), "latin1"))
        .join("");
    for (const number of [1, 2]) spool.append("7", packed(number, `quokka ${number}`));
    spool.acknowledge(1);
    const before = onDisk().length;

    spool.erase();
    const waiting = onDisk().length;
    spool.append("7", packed(3));
    spool.acknowledge(2);
    const left = onDisk();

    expect([before > 0, waiting]).toEqual([true, before]);
    expect(left.length).toBeLessThan(before);
    expect(urlsOf(spool)).toEqual([result(3).url]);
    spool.acknowledge(3);
    spool.erase();
    expect(onDisk()).toBe("");
    expect(spool.append("7", packed(4))).toBe(4);
    spool.close();
    expect(urlsOf(open(home))).toEqual([result(4).url]);
  });

  it("says when it is full, and has room again after an acknowledgement", () => {
    const spool = open(freshHome(), 10_000_000);
    let kept = 0;
    while (spool.append("7", packed(kept + 1, "x".repeat(1_000_000))) !== null) kept++;

    expect(kept).toBe(9);
    expect(spool.hasRoom()).toBe(false);
    spool.acknowledge(kept);
    expect(spool.hasRoom()).toBe(true);
    expect(spool.append("7", packed(10))).toBe(10);
  });

  it("is open in one process at a time", () => {
    const home = freshHome();
    open(home);
    writeFileSync(join(home, "spool", "lock"), String(process.ppid));

    expect(() => new Spool({ home, maxBytes: 1e6 })).toThrow(
      `the spool is in use by process ${process.ppid}`,
    );
  });

  it("takes over from a process that has ended", () => {
    const home = freshHome();
    open(home).close();
    writeFileSync(join(home, "spool", "lock"), "999999999");

    expect(open(home).append("7", packed(1))).toBe(1);
  });
});

describe("a damaged file", () => {
  function spoolOf(count: number): string {
    const home = freshHome();
    const spool = open(home);
    for (let number = 1; number <= count; number++) spool.append("7", packed(number));
    spool.close();
    return home;
  }
  const fileOf = (home: string) => join(home, "spool", filesOf(home)[0]!);

  it("with half a record at its end loses only that record", () => {
    const home = spoolOf(3);
    const file = fileOf(home);
    truncateSync(file, readFileSync(file).length - 5);

    const spool = open(home);

    expect(urlsOf(spool)).toEqual([result(1).url, result(2).url]);
    expect(spool.lostBytes).toBeGreaterThan(0);
    expect(spool.append("7", packed(3))).toBe(3);
  });

  it("with garbage at its end loses only the garbage", () => {
    const home = spoolOf(2);
    appendFileSync(fileOf(home), Buffer.alloc(1000, 0xff));

    const spool = open(home);

    expect(urlsOf(spool)).toHaveLength(2);
    expect(spool.lostBytes).toBe(1000);
  });

  it("with a flipped bit is read up to that record", () => {
    const home = spoolOf(3);
    const bytes = readFileSync(fileOf(home));
    const middle = Math.floor(bytes.length / 2);
    bytes[middle]! ^= 1;
    writeFileSync(fileOf(home), bytes);

    expect(urlsOf(open(home))).toEqual([result(1).url]);
  });
});

describe("kill -9 in the middle of writing", () => {
  it("loses nothing that was reported as stored", async () => {
    const home = freshHome();
    await builtDoors();
    const child = fork(join(import.meta.dirname, "spool-writer.mjs"), [home], {
      execArgv: [],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    const reported = await killAfter(child, 200);

    const spool = open(home);

    expect(reported).toBeGreaterThanOrEqual(200);
    expect(spool.last).toBeGreaterThanOrEqual(reported);
    const urls = urlsOf(spool);
    expect(urls).toEqual(urls.map((_, index) => result(index + 1).url));
  });

  /** Kills the child after this many reports; returns the last reported number. */
  async function killAfter(child: ChildProcess, count: number): Promise<number> {
    let reported = 0;
    child.on("message", (sequence) => {
      reported = sequence as number;
      if (reported === count) child.kill("SIGKILL");
    });
    await once(child, "close");
    return reported;
  }
});

describe("a disk that cannot be written", () => {
  it("makes the spool full with a reason, and keeps its results", () => {
    const home = freshHome();
    const spool = open(home);
    const next = fillUp(spool);
    // The next record needs a new file, whose name a folder already has.
    mkdirSync(join(home, "spool", `results-${String(next).padStart(16, "0")}.log`));

    const kept = spool.append("7", packed(next));

    expect(kept).toBeNull();
    expect(spool.hasRoom()).toBe(false);
    expect(spool.holdingBack()).toMatch(/^the spool cannot be written: .*EEXIST|EISDIR/);
    expect(spool.last).toBe(next - 1);
    expect(resultOf(spool.read(1))).toEqual(result(1, filler));
  });

  it("is tried again, and the numbers continue", () => {
    const home = freshHome();
    const spool = open(home);
    const next = fillUp(spool);
    const blocked = join(home, "spool", `results-${String(next).padStart(16, "0")}.log`);
    mkdirSync(blocked);
    spool.append("7", packed(next));
    rmSync(blocked, { recursive: true });

    const fault = spool.diskFault;
    expect(spool.append("7", packed(next))).toBe(next);

    expect([fault, spool.diskFault]).toEqual([expect.stringMatching(/EEXIST|EISDIR/), null]);
    expect(spool.hasRoom()).toBe(true);
    expect(spool.holdingBack()).toBe("");
  });

  const isFullDevice = existsSync("/dev/full");
  if (!isFullDevice) process.stderr.write("skipped: a full disk: there is no /dev/full here\n");
  it.skipIf(!isFullDevice)("that is full is reported as full", () => {
    const home = freshHome();
    const spool = open(home);
    const next = fillUp(spool);
    symlinkSync("/dev/full", join(home, "spool", `results-${String(next).padStart(16, "0")}.log`));

    const kept = spool.append("7", packed(next));

    expect(kept).toBeNull();
    expect(spool.holdingBack()).toBe("the spool cannot be written: the disk is full (ENOSPC)");
    expect(spool.diskFault).toBe("the disk is full (ENOSPC)");
    expect(spool.last).toBe(next - 1);
  });

  it("is a readable error when the folder cannot be made", () => {
    expect(() => new Spool({ home: "/dev/null/home", maxBytes: 1e6 })).toThrow(UsageError);
    expect(() => new Spool({ home: "/dev/null/home", maxBytes: 1e6 })).toThrow(
      /the spool cannot be opened: .*ENOTDIR/,
    );
  });

  const filler = "x".repeat(300);

  /** Returns the number that will begin the next file. */
  function fillUp(spool: Spool): number {
    let next = 1;
    while (spool.bytes < 8 * 1024 * 1024) spool.append("7", packed(next++, filler));
    return next;
  }
});

describe("what a spool finds when it is opened", () => {
  it("is the leases with their latest results, without reading the results", () => {
    const home = freshHome();
    const before = open(home);
    for (const leaseId of ["7", "18446744073709551615", "7", "9"])
      before.append(leaseId, packResult(leaseId, result(1)));
    before.close();

    expect([...open(home).leases]).toEqual([
      ["7", 3],
      ["18446744073709551615", 2],
      ["9", 4],
    ]);
  });

  it("is refused when a whole record is not ours", () => {
    const home = freshHome();
    open(home).close();
    writeFileSync(
      join(home, "spool", "results-0000000000000001.log"),
      frame(1, Buffer.from('{"leaseId":"1"}')),
    );

    const spool = open(home);

    expect([spool.waiting, spool.lostBytes]).toEqual([0, 31]);
    expect(spool.append("7", packed(3))).toBe(1);
  });

  it("takes a few bytes of memory for each result", async () => {
    const home = freshHome();
    const before = open(home, 1e9);
    for (let number = 1; number <= 30_000; number++) before.append("7", packed(number, "x".repeat(200)));
    before.close();
    const spoolBytes = filesOf(home).reduce((sum, name) => sum + statSync(join(home, "spool", name)).size, 0);
    const heapBefore = await heapBytes();

    const spool = open(home, 1e9);
    const grown = (await heapBytes()) - heapBefore;

    expect(spool.waiting).toBe(30_000);
    expect(spoolBytes).toBeGreaterThan(8_000_000);
    expect(grown).toBeLessThan(3_000_000);
  });

  /** Collects garbage twice, because finalisers free more after the first run. */
  async function heapBytes(): Promise<number> {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    for (let times = 0; times < 3; times++) {
      collect();
      await new Promise((resolve) => setImmediate(resolve));
    }
    // Measures this thread alone, since other tests run in the same process.
    const { used_heap_size, external_memory } = getHeapStatistics();
    return used_heap_size + external_memory;
  }
});
