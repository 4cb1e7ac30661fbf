/**
 * Days, months and hours as people at the crawler's host have them: in a time zone, with its summer time, whose
 * days have 23 or 25 hours twice a year. The zone's rules are the ICU's that Node brings.
 */

interface LocalMoment {
  /** `2026-11-22`: texts that compare as the days do. */
  readonly day: string;
  /** 0: Sunday. */
  readonly weekday: number;
  /** Since midnight by the clock on the wall. */
  readonly minute: number;
}

const minuteMs = 60_000;
const dayMs = 86_400_000;

export function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

export class LocalTime {
  readonly #format: Intl.DateTimeFormat;
  #lastMinute = Number.NaN;
  #last: LocalMoment = { day: "", weekday: 0, minute: 0 };

  /** Null: the system's zone. */
  constructor(timeZone: string | null) {
    this.#format = new Intl.DateTimeFormat("en-CA", {
      ...(timeZone === null ? {} : { timeZone }),
      calendar: "gregory",
      numberingSystem: "latn",
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
    });
  }

  /** Cheap: the clock on the wall is read once a minute. */
  at(time: Date): LocalMoment {
    const minute = Math.floor(time.getTime() / minuteMs);
    if (minute !== this.#lastMinute) {
      this.#last = this.#read(time);
      this.#lastMinute = minute;
    }
    return this.#last;
  }

  /** `Mon 22:00`, as the clock on the wall shows it. */
  words(time: Date): string {
    const { weekday, minute } = this.#read(time);
    const [hours, minutes] = [Math.floor(minute / 60), minute % 60].map((part) =>
      String(part).padStart(2, "0"),
    );
    return `${["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][weekday]} ${hours}:${minutes}`;
  }

  /** When the day ends. */
  dayEnd(time: Date): Date {
    return this.#change(time, 1.2 * dayMs, ({ day }) => day);
  }

  /** When the month ends. */
  monthEnd(time: Date): Date {
    return this.#change(time, 32 * dayMs, ({ day }) => day.slice(0, 7));
  }

  /** When clocks are changed between two times; null: they are not. */
  clockChange(from: Date, until: Date): Date | null {
    const offset = ({ day, minute }: LocalMoment, at: number) =>
      String(new Date(`${day}T00:00:00Z`).getTime() / minuteMs + minute - at);
    const offsetAt = (time: Date) => offset(this.#read(time), Math.floor(time.getTime() / minuteMs));
    if (offsetAt(from) === offsetAt(until)) return null;
    return this.#change(from, until.getTime() - from.getTime(), offset);
  }

  /** The minute in which what is looked at changes for the first time, if it changes but once. */
  #change(time: Date, withinMs: number, look: (moment: LocalMoment, minute: number) => string): Date {
    const before = look(this.#read(time), Math.floor(time.getTime() / minuteMs));
    let same = Math.floor(time.getTime() / minuteMs);
    let other = same + Math.ceil(withinMs / minuteMs);
    while (other - same > 1) {
      const middle = Math.floor((same + other) / 2);
      if (look(this.#read(new Date(middle * minuteMs)), middle) === before) same = middle;
      else other = middle;
    }
    return new Date(other * minuteMs);
  }

  #read(time: Date): LocalMoment {
    const parts: Record<string, string> = {};
    for (const { type, value } of this.#format.formatToParts(time)) parts[type] = value;
    const day = `${parts.year}-${parts.month}-${parts.day}`;
    const weekday = new Date(`${day}T00:00:00Z`).getUTCDay();
    return { day, weekday, minute: Number(parts.hour) * 60 + Number(parts.minute) };
  }
}
