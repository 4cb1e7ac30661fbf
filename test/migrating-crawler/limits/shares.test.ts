/** The processor share, exactly with an injected clock and coarsely with a real crawl. */
import { describe, expect, it } from "vitest";
import { CpuShare } from "#crawler/limits/shares";
import { html, startOrigin } from "../support/origin.ts";
import { sliceRunner } from "../support/slices.ts";

/** A machine on which only work uses the processor. */
class Machine {
  cpu = 0;
  now = 0;
  readonly clock = { cpuMs: () => this.cpu, nowMs: () => this.now };

  work(ms: number): void {
    this.cpu += ms;
    this.now += ms;
  }
}

describe("a share of the processor", () => {
  it.each([0.05, 0.25, 0.5, 0.9])("of %d is met by work in turns", (share) => {
    const machine = new Machine();
    const cpu = new CpuShare(share, machine.clock);

    while (machine.now < 60_000) {
      machine.now += cpu.waitMs();
      machine.work(8);
    }

    expect(machine.cpu / machine.now).toBeCloseTo(share, 2);
  });

  it("is kept when other work does not wait, because the rest waits longer", () => {
    const machine = new Machine();
    const cpu = new CpuShare(0.5, machine.clock);

    while (machine.now < 60_000) {
      machine.now += cpu.waitMs();
      machine.work(8);
      machine.work(2);
    }

    expect(machine.cpu / machine.now).toBeCloseTo(0.5, 2);
  });

  it("is not accumulated while there is nothing to do", () => {
    const machine = new Machine();
    const cpu = new CpuShare(0.5, machine.clock);
    machine.now += 3_600_000;
    const began = { ...machine };

    for (let worked = 0; worked < 1000; worked += 8) {
      machine.now += cpu.waitMs();
      machine.work(8);
    }

    expect((machine.cpu - began.cpu) / (machine.now - began.now)).toBeLessThan(0.6);
  });

  it("needs no wait when there is no limit", () => {
    const machine = new Machine();
    const cpu = new CpuShare(null, machine.clock);

    machine.work(1_000_000);

    expect(cpu.waitMs()).toBe(0);
  });

  it("releases those who wait one by one, and all when it ends", async () => {
    const machine = new Machine();
    const cpu = new CpuShare(0.01, machine.clock);
    machine.work(1000);
    const turns = [cpu.turn(), cpu.turn(), cpu.turn()];

    expect(cpu.waiting).toBe(3);
    cpu.close();

    await Promise.all(turns);
    expect(cpu.waiting).toBe(0);
  });

  it("reports recent use", () => {
    const machine = new Machine();
    const cpu = new CpuShare(null, machine.clock);

    for (let second = 0; second < 30; second++) {
      machine.work(250);
      machine.now += 750;
      cpu.recent();
    }

    expect(cpu.recent()).toBeCloseTo(0.25, 1);
  });
});

// A real crawl with more work than its processor share allows, measured by the kernel.

const words = Array.from({ length: 4000 }, (_, index) => `ship${index} sails northwards`).join(" ");

/**
 * Only checks an upper bound, since a busy machine gives the crawl less. The sites run in this process too, so the
 * crawl pays for their work.
 */
it("stays within five points of its share", { timeout: 60_000 }, async () => {
  const origin = await startOrigin((request, response) => {
    if (request.url === "/robots.txt") return void response.writeHead(404).end();
    html(response, `<title>${request.url}</title><p>${words}`);
  });
  const cpuShare = 0.25;
  const runner = sliceRunner({ limits: { cpuShare }, requestsPerAddress: 64 });
  const pages = (host: string) =>
    Array.from({ length: 7 }, (_, page) => `http://${host}.localhost:${origin.port}/${page}`);
  const began = { cpu: process.cpuUsage(), ms: performance.now() };

  const crawled = await Promise.all(["a", "b", "c"].map((host) => runner.crawl(pages(host))));

  const { user, system } = process.cpuUsage(began.cpu);
  const share = (user + system) / 1000 / (performance.now() - began.ms);
  expect(crawled.map(({ results }) => results.length)).toEqual([7, 7, 7]);
  expect(share).toBeLessThan(cpuShare + 0.05);
});
