/** A share in whole percent, as tables have it. */
export function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}
