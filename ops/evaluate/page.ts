/**
 * The page that an evaluation writes: each section stands between two markers, so that one of them can be made
 * anew and whatever people wrote around them stays.
 */
export interface PageSection {
  readonly name: string;
  readonly title: string;
  readonly text: string;
  /** When, at which commit and on which machine it was measured. */
  readonly provenance: string;
}

const headline = "# Delegation";

/** The page with these sections in place of the earlier ones of the same name; new ones come at the end. */
export function withSections(page: string, sections: readonly PageSection[]): string {
  return sections.reduce(withSection, page.trim() === "" ? `${headline}\n` : page);
}

function withSection(page: string, section: PageSection): string {
  const [begin, end] = [`<!-- evaluate ${section.name}: begin -->`, `<!-- evaluate ${section.name}: end -->`];
  const block = `${begin}\n## ${section.title}\n${section.text}\n\n${section.provenance}\n${end}`;
  const from = page.indexOf(begin);
  const to = page.indexOf(end, from);
  if (from < 0 || to < 0) return `${page.trimEnd()}\n\n${block}\n`;
  return `${page.slice(0, from)}${block}${page.slice(to + end.length)}`;
}
