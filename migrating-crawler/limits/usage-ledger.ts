/**
 * What was used on which day, so that a day's and a month's limit hold whatever the clock does. Each day's use is
 * an entry of its own: a clock that goes back to a day continues its entry. Going back to a day that has none is a
 * clock set wrong, now or before: that day begins with what the later one had used, so that setting a clock back
 * gives nothing away, and the later day, once it comes back, takes over what was added meanwhile. Pure.
 */

export interface DayUse {
  /** `2026-11-22`, in the host's time zone. */
  readonly day: string;
  readonly pages: number;
  readonly bytes: number;
  /** Of the same month, before that day. */
  readonly bytesBefore: number;
  /** The later day whose use this one began with, when the clock went back. */
  readonly wentBackFrom: string | null;
}

export interface UsageLedger {
  readonly today: DayUse;
  /** Other days that the clock may go to, latest used first. */
  readonly others: readonly DayUse[];
}

const mostOthers = 4;

export const noUse: DayUse = { day: "", pages: 0, bytes: 0, bytesBefore: 0, wentBackFrom: null };
export const emptyLedger: UsageLedger = { today: noUse, others: [] };

/** The ledger when the clock on the wall shows this day. */
export function onDay(ledger: UsageLedger, day: string): UsageLedger {
  const { today } = ledger;
  if (today.day === day) return ledger;
  const others = today.day === "" ? ledger.others : [today, ...ledger.others];
  return {
    today: entryOf(day, today, ledger.others.find((other) => other.day === day) ?? null),
    others: others.filter((other) => other.day !== day).slice(0, mostOthers),
  };
}

export function withUse(ledger: UsageLedger, pages: number, bytes: number): UsageLedger {
  const { today } = ledger;
  return {
    ...ledger,
    today: { ...today, pages: Math.max(0, today.pages + pages), bytes: today.bytes + bytes },
  };
}

export const bytesOfMonth = ({ today }: UsageLedger) => today.bytesBefore + today.bytes;

function entryOf(day: string, last: DayUse, known: DayUse | null): DayUse {
  if (known !== null) return comeBack(known, last);
  if (last.day > day) return { ...last, day, wentBackFrom: last.day };
  const isSameMonth = last.day.slice(0, 7) === day.slice(0, 7);
  return { ...noUse, day, bytesBefore: isSameMonth ? last.bytesBefore + last.bytes : 0 };
}

function comeBack(known: DayUse, last: DayUse): DayUse {
  if (last.wentBackFrom === known.day) {
    const { pages, bytes, bytesBefore } = last;
    return { ...known, pages, bytes, bytesBefore: Math.max(known.bytesBefore, bytesBefore) };
  }
  const follows = last.day < known.day && last.day.slice(0, 7) === known.day.slice(0, 7);
  return follows
    ? { ...known, bytesBefore: Math.max(known.bytesBefore, last.bytesBefore + last.bytes) }
    : known;
}
