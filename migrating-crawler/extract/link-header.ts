/** Reads the targets of a relation from `Link` headers (RFC 8288), as written. */

export type LinkHeader = string | readonly string[] | undefined;

const maxHeaders = 20;
const maxCharacters = 8192;

/** Keeps their order; one parameter may name several relations. */
export function linkTargets(header: LinkHeader, relation: string): string[] {
  const states = new RegExp(
    `;\\s*rel\\s*=\\s*(?:"(?:[^"]*\\s)?${relation}(?:\\s[^"]*)?"|${relation}(?=\\s|[;,]|$))`,
    "i",
  );
  const links = [header ?? []]
    .flat()
    .slice(0, maxHeaders)
    .flatMap((value) => [...value.slice(0, maxCharacters).matchAll(/<([^<>]*)>([^<]*)/g)]);
  return links.flatMap(([, target, parameters]) => (states.test(parameters!) ? [target!] : []));
}
