/** The processor share, exactly with an injected clock and coarsely with a real crawl. */
import { describe, expect, it } from "vitest";
import { CpuShare } from "#crawler/limits/cpu-share";

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
  it.each([0.05, 0.25, 0.5, 0.9])("of %d is what work in turns comes to", (share) => {
    const machine = new Machine();
    const cpu = new CpuShare(share, machine.clock);

    while (machine.now < 60_000) {
      machine.now += cpu.waitMs();
      machine.work(8);
    }

    expect(machine.cpu / machine.now).toBeCloseTo(share, 2);
  });

  it("is kept although other work does not wait, by making the rest wait longer", () => {
    const machine = new Machine();
    const cpu = new CpuShare(0.5, machine.clock);

    while (machine.now < 60_000) {
      machine.now += cpu.waitMs();
      machine.work(8);
      machine.work(2);
    }

    expect(machine.cpu / machine.now).toBeCloseTo(0.5, 2);
  });

  it("is not saved up while there is nothing to do", () => {
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

  it("is none of anybody's business where there is no limit", () => {
    const machine = new Machine();
    const cpu = new CpuShare(null, machine.clock);

    machine.work(1_000_000);

    expect(cpu.waitMs()).toBe(0);
  });

  it("lets those who wait go one by one, and all when it ends", async () => {
    const machine = new Machine();
    const cpu = new CpuShare(0.01, machine.clock);
    machine.work(1000);
    const turns = [cpu.turn(), cpu.turn(), cpu.turn()];

    expect(cpu.waiting).toBe(3);
    cpu.close();

    await Promise.all(turns);
    expect(cpu.waiting).toBe(0);
  });

  it("tells what was used lately", () => {
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
