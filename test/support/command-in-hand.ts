/** A registry job's process that ends when the test says so or stops it. */
import type { CommandEnd, JobStep, RegistryCommands, RegistryOrder } from "#coordinator/run/registry/jobs";

export class CommandInHand implements RegistryCommands {
  readonly orders: RegistryOrder[] = [];
  stops = 0;
  onStep: (step: JobStep) => void = () => {};
  end: (end: Partial<CommandEnd>) => void = () => {};

  start(order: RegistryOrder, _asker: unknown, onStep: (step: JobStep) => void) {
    this.orders.push(order);
    this.onStep = onStep;
    const ended = new Promise<CommandEnd>((resolve) => {
      this.end = (end) => resolve({ exitCode: 0, words: "", result: null, ...end });
    });
    const stop = () => {
      this.stops += 1;
      this.end({ exitCode: null, words: "it was ended by SIGTERM" });
    };
    return { ended, stop };
  }
}
