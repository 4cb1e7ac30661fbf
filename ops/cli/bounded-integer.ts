/** An option's whole number within bounds, for commander. */
import { InvalidArgumentError } from "commander";

export function boundedInteger(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d{1,15}$/.test(text) || value < least || value > most) {
      throw new InvalidArgumentError(`a whole number from ${least} to ${most} is expected`);
    }
    return value;
  };
}
