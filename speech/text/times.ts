import { parseNumericDate, sayDateAt } from './dates.ts';
import type { SpokenLanguage } from './languages/language.ts';
import { letters } from './letters.ts';
import { parseNumber, sayNumber } from './numbers.ts';
import { type Context, isOpen, type Reading, type Token } from './token.ts';

/** Reads 10:30, 14:05:30, 10:30 am, 5pm, 10.30 a.m., 8 a.m.–5 p.m. */
export function readTime(at: number, { tokens, language }: Context): Reading | null {
  const token = tokens[at]!;
  if (!token.hasDigit) return null;
  const attached = /^(\d{1,2})(?:[:.](\d{2}))?(am|pm|a\.m|p\.m)$/i.exec(token.core);
  if (attached !== null) {
    const time = sayClock({ hour: attached[1]!, minute: attached[2] ?? '00', isHalfDay: true }, language);
    const meridiem = letters(attached[3]!.replaceAll('.', ''));
    return time === null ? null : { spoken: [`${time} ${meridiem}`], fullStop: 'may-end' };
  }
  const span = /^([\d:.]{1,5})([ap]m)?[-–]([\d:.]{1,5})([ap]m)$/i.exec(token.core);
  if (span !== null && language.to !== null) {
    const [, from = '', half = '', until = '', secondHalf = ''] = span;
    const first =
      half === ''
        ? sayTimeAs(`${from}${secondHalf}`, language)?.replace(/ [AP]\.M\.$/, '')
        : sayTimeAs(`${from}${half}`, language);
    const second = sayTimeAs(`${until}${secondHalf}`, language);
    if (first !== undefined && first !== null && second !== null) {
      return { spoken: [`${first} ${language.to} ${second}`], fullStop: 'may-end' };
    }
  }
  const next = tokens[at + 1];
  const half = isOpen(token) ? /^([ap])\.?m$/i.exec(next?.core ?? '') : null;
  const hours = /^(\d{1,2}(?:[:.]\d\d)?)[-–](\d{1,2}(?:[:.]\d\d)?)$/.exec(token.core);
  if (hours !== null && language.to !== null && (half !== null || /:\d\d[-–]\d+:/.test(token.core))) {
    const said = hours.slice(1).map((hour) => sayTimeAs(`${hour}${half === null ? '' : `${half[1]}m`}`, language));
    if (!said.includes(null)) {
      const [first, last] = said.map((time) => time!.replace(/ [AP]\.M\.$/, ''));
      const span = `${first} ${language.to} ${last}`;
      return half === null ? { spoken: [span] } : { spoken: [span, letters(`${half[1]}m`)], fullStop: 'may-end' };
    }
  }
  const halves = readHalves(at, { tokens, language });
  if (halves !== null) return halves;
  const meridiem = isOpen(token) ? /^([ap])\.?m$/i.exec(next?.core ?? '') : null;
  if (meridiem !== null) {
    const written = /^(\d{1,2})(?:[:.](\d{2}))?$/.exec(token.core);
    if (written === null) return null;
    const time = sayClock({ hour: written[1]!, minute: written[2] ?? '00', isHalfDay: true }, language);
    return time === null ? null : { spoken: [time, letters(`${meridiem[1]}m`)], fullStop: 'may-end' };
  }
  const military = readMilitary(at, { tokens, language });
  if (military !== null) return military;
  const clock = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/.exec(token.core);
  if (clock === null) return null;
  const before = isOpen(token) && HOUR_WORDS.test(next?.core ?? '') ? sayBeforeHourWord(clock, language) : null;
  if (before !== null) return { spoken: before };
  const time = sayClock({ hour: clock[1]!, minute: clock[2]!, second: clock[3] ?? null, isHalfDay: false }, language);
  return time === null ? null : { spoken: [time] };
}

/**
 * Reads date-times such as 2026-11-28T14:05:00Z, 2026-11-28T14:05+05:30 (ISO 8601) and 2026-11-28 14:05:00.123. Omits
 * fractions of a second.
 */
export function readTimestamp(at: number, { tokens, language }: Context): Reading | null {
  const { core } = tokens[at]!;
  const next = isOpen(tokens[at]) ? (tokens[at + 1]?.core ?? '') : '';
  const isSpaced = PRECISE_TIME.test(next);
  const written = TIMESTAMP.exec(isSpaced ? `${core}T${next}` : core);
  const [, day = '', hour = '', minute = '', second = '00', zone = ''] = written ?? [];
  const date = parseNumericDate(day, language);
  if (date === null) return null;
  const clock = { hour, minute, second: second === '00' ? null : second, isHalfDay: false };
  // Engines of other languages read digits themselves.
  const time = sayClock(clock, language) ?? (language.phrases === null ? `${hour}:${minute}` : null);
  const said = sayDateAt(at, date, { tokens, language });
  if (said === null || time === null) return null;
  const timeSaid = `${time}${zone === '' ? '' : ` ${sayZone(zone, language)}`}`;
  return { spoken: isSpaced ? [`${said},`, timeSaid] : [`${said}, ${timeSaid}`] };
}

/** With a zone or a fraction, unlike the range 14:05-15:00. */
const PRECISE_TIME = /^\d\d:\d\d(?:Z|:\d\d(?:[.,]\d+)?(?:Z|[-+]\d\d(?::?\d\d)?)|:\d\d[.,]\d+)$/;

/** Reads ISO 8601 durations with a time, such as PT1H30M. English only. */
export function readDuration(at: number, { tokens, language }: Context): Reading | null {
  const { core } = tokens[at]!;
  if (language.base !== 'en' || !core.startsWith('P')) return null;
  const [, ...amounts] = DURATION.exec(core) ?? [];
  const said = amounts.flatMap((written, index) => {
    const amount = written === undefined ? null : parseNumber(written, language);
    return amount === null ? [] : [`${sayNumber(amount, language)} ${language.unit(DURATION_UNITS[index]!, amount)}`];
  });
  return said.length === 0 ? null : { spoken: [said.join(' ')] };
}

const DURATION = /^P(?:(\d{1,3})D)?T(?:(\d{1,4})H)?(?:(\d{1,4})M)?(?:(\d{1,5}(?:\.\d{1,3})?)S)?$/;
const DURATION_UNITS = ['day', 'hour', 'minute', 'second'];

const TIMESTAMP =
  /^(\d{4}-\d\d-\d\d)T([01]\d|2[0-4]):([0-5]\d)(?::([0-5]\d)(?:[.,]\d{1,9})?)?(Z|[-+]\d\d(?::?\d\d)?)?$/i;

function sayZone(zone: string, { base, numbers }: SpokenLanguage): string {
  const [, sign, hours, minutes = '00'] = /^([-+])(\d\d):?(\d\d)?$/.exec(zone) ?? [];
  if (base !== 'en' || numbers === null) return sign === undefined ? 'UTC' : `UTC${zone}`;
  if (sign === undefined) return letters('UTC');
  const said = [hours, minutes].filter((part) => part !== '00').map((part) => numbers.cardinal(Number(part), null));
  return `${letters('UTC')} ${sign === '+' ? 'plus' : 'minus'} ${said.join(' ') || 'zero'}`;
}

/** "8 pm EST" and "10:30 UTC". Elsewhere "EST." is "established". */
export function readTimeZone(at: number, { tokens, language }: Context): Reading | null {
  if (language.base !== 'en' || !isTimeZone(at, tokens)) return null;
  return { spoken: [letters(tokens[at]!.core)] };
}

export function isTimeZone(at: number, tokens: readonly Token[]): boolean {
  return ZONES.test(tokens[at]?.core ?? '') && BEFORE_ZONES.test(tokens[at - 1]?.core ?? '');
}

const ZONES = /^(?:[ECMP][SD]?T|AK[SD]T|HST|GMT|UTC|BST|IST|CES?T|EES?T|SGT|JST|AE[SD]T|NZ[SD]T|SAST)$/;
const BEFORE_ZONES = /^(?:\d{1,2}:\d\d|(?:\d{1,2}(?:[:.]\d\d)?)?[ap]\.?m|noon|midnight)$/i;

/** "0630 hours", "at 1800 hrs", "0900-1700h", but "2000 hours of use", "up by 1000 hours" and "lasts 1000-1500 hours". */
function readMilitary(at: number, { tokens, language }: Context): Reading | null {
  if (language.base !== 'en') return null;
  const token = tokens[at]!;
  const [, first = '', last, attached] = /^(\d{4})(?:[-–](\d{4}))?(h|hrs|hours)?$/.exec(token.core) ?? [];
  const hasWord = attached === undefined && isOpen(token) && /^(?:hrs?|hours|h)$/.test(tokens[at + 1]?.core ?? '');
  if (first === '' || (!hasWord && attached === undefined)) return null;
  const before = tokens[at - 1]?.core ?? '';
  const isTime = first.startsWith('0') || (last === undefined ? BEFORE_TIMES.test(before) : !BEFORE_SPANS.test(before));
  const after = tokens[hasWord ? at + 2 : at + 1]?.core ?? '';
  if (!isTime || AFTER_SPANS.test(after)) return null;
  const near = tokens.slice(Math.max(0, at - 3), at);
  if (/^(?:by|from)$/.test(before) && near.some(({ core }) => CHANGES.test(core))) return null;
  const times = [first, ...(last === undefined ? [] : [last])].map((time) => sayMilitary(time, language));
  if (times.includes(null)) return null;
  const said = times.join(` ${language.to} `);
  return hasWord
    ? { spoken: [said, 'hours'], fullStop: 'may-end' }
    : { spoken: [`${said} hours`], fullStop: 'may-end' };
}

const BEFORE_TIMES = /^(?:at|by|from|until|till|before)$/i;
const BEFORE_SPANS =
  /^(?:lasts?|lasted|takes?|took|needs?|requires?|rated|about|around|roughly|approximately|for|of|than|over|spends?|spent|works?|worked)$/i;
const AFTER_SPANS = /^(?:of|a|an|per|each|every|annually|yearly|life|lifespan|lifetime|experience|battery)$/;
const CHANGES =
  /^(?:rose|risen|fell|fallen|grew|grown|up|down|cut|drop(?:s|ped)?|(?:increas|decreas|reduc|exceed|extend)(?:e|es|s|ed)?)$/i;

/** "Zero six thirty", "eighteen hundred". */
function sayMilitary(time: string, { numbers }: SpokenLanguage): string | null {
  const [hour, minute] = [time.slice(0, 2), time.slice(2)];
  if (numbers === null || Number(hour) > 24 || Number(minute) > 59) return null;
  const [hours, minutes] = [hour, minute].map((two) => {
    const name = numbers.cardinal(Number(two), null);
    return two.startsWith('0') ? `${numbers.digits[0]} ${name}` : name;
  });
  return `${hours} ${minute === '00' ? 'hundred' : minutes}`;
}

/** 8 a.m.–5 p.m. and 8 am-5pm: the first meridiem and the second hour are one written word. */
function readHalves(at: number, { tokens, language }: Context): Reading | null {
  const [token, next, last] = tokens.slice(at, at + 3);
  const joined = isOpen(token) ? /^([ap])\.?m\.?[-–—]([\d:.]{1,5})(?:([ap])\.?m)?$/i.exec(next?.core ?? '') : null;
  if (joined === null || language.to === null) return null;
  const [, half = '', until = '', attached] = joined;
  const secondHalf = attached ?? (isOpen(next) ? /^([ap])\.?m$/i.exec(last?.core ?? '')?.[1] : undefined);
  if (secondHalf === undefined) return null;
  const [from, to] = [`${token!.core}${half}m`, `${until}${secondHalf}m`].map((time) =>
    sayTimeAs(time, language)?.replace(/ [AP]\.M\.$/, ''),
  );
  if (from === undefined || to === undefined) return null;
  const spoken = [from, `${letters(`${half}m`)} ${language.to} ${to}`, letters(`${secondHalf}m`)];
  if (attached === undefined) return { spoken, fullStop: 'may-end' };
  return { spoken: [from, spoken.slice(1).join(' ')], fullStop: 'may-end' };
}

/** "At ... o'clock" in the languages of India, after the digits. */
const HOUR_WORDS = /^(बजे|बजकर|वाजता|वाजले|টায়|টা|மணி|மணிக்கு|గంటలు|గంటలకు|વાગ્યે|ಗಂಟೆ|ಗಂಟೆಗೆ|മണി|മണിക്ക്|ਵਜੇ|ଟାରେ|ଟା|বজাত|بجے)$/u;

/** For the time, or for the time and the hour word, if that is not spoken after minutes. */
function sayBeforeHourWord([, hour, minute]: RegExpExecArray, { base, numbers }: SpokenLanguage): string[] | null {
  const hours = Number(hour);
  const minutes = Number(minute);
  if (numbers === null || hours > 24 || minutes > 59) return null;
  const name = (number: number) => numbers.cardinal(number, null);
  if (minutes === 0) return [name(hours)];
  if (base !== 'hi') return [`${name(hours)} ${name(minutes)}`];
  if (minutes === 30) return [{ 1: 'डेढ़', 2: 'ढाई' }[hours] ?? `साढ़े ${name(hours)}`];
  if (minutes === 15) return [hours === 1 ? 'सवा' : `सवा ${name(hours)}`];
  if (minutes === 45) return [hours === 0 || hours === 12 ? 'पौने एक' : `पौने ${name(hours + 1)}`];
  return [`${name(hours)} बजकर`, `${name(minutes)} मिनट`];
}

interface Clock {
  hour: string;
  minute: string;
  second?: string | null;
  /** am or pm follows: "ten" and not "ten o'clock". */
  isHalfDay: boolean;
}

/** Null if it is not a time of day. */
export function sayClock({ hour, minute, second = null, isHalfDay }: Clock, language: SpokenLanguage): string | null {
  const hours = Number(hour);
  const minutes = Number(minute);
  const seconds = second === null ? null : Number(second);
  if (hours > (isHalfDay ? 12 : 24) || minutes > 59 || (seconds !== null && seconds > 59)) return null;
  const { phrases, numbers } = language;
  if (phrases === null || numbers === null) return isHalfDay ? `${hour}:${minute}` : null;
  if (isHalfDay && minutes === 0 && language.base === 'en') return numbers.cardinal(hours, null);
  return phrases.time({ hour: hours, minute: minutes, second: seconds });
}

/** W3C: hms12 or hms24, here any. Null if the text is not a time. */
export function sayTimeAs(text: string, language: SpokenLanguage): string | null {
  const written = /^(\d{1,2})(?:[:.](\d{2}))?(?:[:.](\d{2}))?\s*(?:([ap])\.?m\.?)?$/i.exec(text);
  if (written === null) return null;
  const [, hour = '', minute = '00', second = null, half] = written;
  const time = sayClock({ hour, minute, second, isHalfDay: half !== undefined }, language);
  return time === null || half === undefined ? time : `${time} ${letters(`${half}m`)}`;
}
