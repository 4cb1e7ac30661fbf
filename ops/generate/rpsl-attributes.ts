/**
 * Attributes of RPSL objects as the registries print them (RFC 2622 section 2): the name, a colon, and the
 * value from the seventeenth column.
 */

const labels = new Map<string, string>();

/** One line with its end; nothing stands behind the colon of an empty value. */
export function attribute(name: string, value: string): string {
  return value === "" ? `${name}:\n` : `${labelOf(name)}${value}\n`;
}

function labelOf(name: string): string {
  const known = labels.get(name);
  if (known !== undefined) return known;
  const label = `${name}:`.padEnd(16);
  labels.set(name, label);
  return label;
}
