/** Text from outside on a terminal: titles, names and reasons may hold escape sequences and direction marks. */

/** Control characters become spaces, direction overrides vanish; at most `most` characters are kept. */
export function printable(text: string, most = 400): string {
  const plain = text.replace(/\p{Cc}/gu, " ").replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
  return plain.length > most ? `${plain.slice(0, most - 1)}…` : plain;
}
