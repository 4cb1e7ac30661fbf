/** At most so many UTF-16 units, never half a character; NUL, which Postgres' text cannot hold, as a blank. */
export function cutAt(text: string, most: number): string {
  const cut = text.length > most ? text.slice(0, most) : text;
  const whole = cut.includes("\0") ? cut.replaceAll("\0", " ") : cut;
  return /[\ud800-\udfff]/.test(whole) ? whole.replace(/\p{Surrogate}/gu, "\ufffd") : whole;
}
