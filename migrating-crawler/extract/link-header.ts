/** The `Link` headers of an answer (RFC 8288): the targets that stand in a relation to it, as written. */

export type LinkHeader = string | readonly string[] | undefined;

const maxHeaders = 20;
const maxCharacters = 8192;

/** In their order; several relations may stand in one parameter. */
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
