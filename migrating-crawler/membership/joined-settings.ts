/**
 * Settings of a crawler whose home has a membership: coordinator, name and key come from there, so that the
 * settings file holds no secret and nothing that could disagree.
 */
import { readMembership } from "./membership.ts";

const fromMembership = ["coordinatorUrl", "name", "key"] as const;

/** The settings as they were when their home has none. What both state and differs is a fault. */
export function joinedSettings(settings: unknown): { readonly settings: unknown; readonly faults: string[] } {
  const given = settings as Readonly<Record<string, unknown>> | null;
  if (typeof given !== "object" || given === null || typeof given.home !== "string") {
    return { settings, faults: [] };
  }
  const membership = readMembership(given.home);
  if (membership === null) return { settings, faults: [] };
  const faults = fromMembership
    .filter((name) => given[name] !== undefined && given[name] !== membership[name])
    .map((name) => `${name}: is not what membership.json of ${String(given.home)} has: leave it out here`);
  const { coordinatorUrl, name, key } = membership;
  return { settings: { ...given, coordinatorUrl, name, key }, faults };
}
