/** What a query says, checked by the parameters of its operation. */
import { z } from "zod";

const mostShown = 60;

/** A text: why it cannot be asked. `given`: the value of a name, empty where there is none. */
export function askedOf<Shape extends z.ZodRawShape>(
  shape: Shape,
  given: (name: string) => string,
): z.output<z.ZodObject<Shape>> | string {
  const values = Object.keys(shape).map((name) => [name, given(name).trim()] as const);
  const parsed = z.object(shape).safeParse(Object.fromEntries(values.filter(([, value]) => value !== "")));
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map(({ path, message }) => {
    const name = String(path[0]);
    const value = given(name).trim();
    return `${name}: ${value.length > mostShown ? `${value.slice(0, mostShown)}…` : value}: ${message}`;
  });
  return `${faults.join("; ")}.`;
}
