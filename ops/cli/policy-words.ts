/** Policies as they are typed. */
import {
  isPolicyName,
  type PolicyValue,
  unknownPolicy,
  valueFromText,
} from "#coordinator/settings/catalogue";
import { UsageError } from "#core/errors";

/** `name=value`; without a value, back to the file's. */
export function valuesIn(given: readonly string[]): Record<string, PolicyValue | null> {
  return Object.fromEntries(
    given.map((one) => {
      const at = one.indexOf("=");
      if (at < 1) throw new UsageError(`${one}: write NAME=VALUE, such as delegation.lambdaMs=0.5`);
      const [name, text] = [one.slice(0, at), one.slice(at + 1)];
      if (!isPolicyName(name)) throw new UsageError(`${unknownPolicy(name)}: nearcrawl policy show`);
      return [name, text === "" ? null : valueFromText(name, text)];
    }),
  );
}
