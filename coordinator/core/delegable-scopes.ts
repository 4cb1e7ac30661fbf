/** Nobody gives to others what they may not do themselves. */

import type { Person } from "./access-types.ts";
import { type Actor, type Scope, scopesOf } from "./actor.ts";

/** A sentence that says what is missing; null: nothing is. */
export function cannotGive(actor: Actor, given: readonly Scope[]): string | null {
  const missing = given.filter((scope) => !actor.scopes.includes(scope));
  return missing.length === 0
    ? null
    : `${actor.name} may not give what it has not got: ${missing.join(", ")}.`;
}

/** A partner steers its crawlers, as fleet-write does all of them. */
export function scopesOfPerson({ role }: Pick<Person, "role">): readonly Scope[] {
  return role === "partner" ? ["fleet-write"] : scopesOf[role];
}
