import { LETTERED_THINGS, PLACES } from './languages/english-words.ts';
import type { SpokenLanguage } from './languages/language.ts';
import { PER } from './money.ts';
import { isDeterminer, parseNumber, sayNumber } from './numbers.ts';
import { type Context, isOpen, type Reading, type Token, VULGAR_FRACTIONS } from './token.ts';

/** Reads 5%, 2.5 %, 5-10%, 5%-10%; 5 km, 20°C, 10 MB, 60 km/h. */
export function readMeasure(at: number, { tokens, language }: Context): Reading | null {
  const token = tokens[at]!;
  const height = language.base === 'en' ? /^(\d)['’′](\d{1,2})$/.exec(token.core) : null;
  if (height !== null && /^["”″]/.test(token.trail) && Number(height[2]) < 12) {
    const [feet, inches] = height.slice(1).map((digits) => language.numbers!.cardinal(Number(digits), null));
    return { spoken: [`${feet} foot ${inches}`] };
  }
  // Unlike the date of "BP check 12/15".
  const pressures = language.base === 'en' ? /^([6-9]\d|[12]\d\d)\/([3-9]\d|1\d\d)$/.exec(token.core) : null;
  if (pressures !== null && isPressure(at, tokens)) {
    const [upper, lower] = pressures.slice(1).map((digits) => language.numbers!.cardinal(Number(digits), null));
    return { spoken: [`${upper} over ${lower}`] };
  }
  const match = MEASURE.exec(token.core);
  if (match === null) return null;
  const [, first = '', firstSuffix, second, suffix] = match;
  if (firstSuffix !== undefined && firstSuffix !== suffix) return null;
  if (second !== undefined && language.to === null) return null;
  if (/^[A-Z]$/.test(suffix ?? '') && isNameWith(suffix!, at, { tokens, language })) return null;
  const low = parseNumber(first.replace(/^\+/, ''), language);
  const number = second === undefined ? low : parseNumber(second, language);
  if (low === null || number === null) return null;
  const plus = first.startsWith('+') && language.plus !== null ? `${language.plus} ` : '';
  const lowSaid = `${plus}${sayNumber(low, language)}`;
  const amount = second === undefined ? lowSaid : `${lowSaid} ${language.to} ${sayNumber(number, language)}`;
  if (suffix !== undefined) {
    // In 1h 30m and 5m 30s the m is a minute.
    const isMinute =
      suffix === 'm' &&
      (/^\d{1,2}(?:h|hrs?)$/i.test(tokens[at - 1]?.core ?? '') ||
        (isOpen(token) && /^\d{1,2}m$/.test(token.core) && /^\d{1,2}s$/.test(tokens[at + 1]?.core ?? '')));
    const thing = isOpen(token) ? (tokens[at + 1]?.core ?? '') : '';
    if (language.base === 'en' && suffix === 'm' && COUNTED_IN_MILLIONS.test(thing)) {
      return { spoken: [`${amount} million`, thing] };
    }
    const name = measureName(isMinute ? 'min' : suffix, { isAttached: true }, number, language);
    return name === null ? null : { spoken: [`${amount} ${name}`] };
  }
  const next = tokens[at + 1];
  if (!isOpen(token) || next === undefined || next.core === '' || next.lead !== '') return null;
  // 5 ft 10 in
  const isInches = next.core === 'in' && /^(ft|feet|foot)$/.test(tokens[at - 1]?.core ?? '');
  const degrees = readDegrees(at, amount, { tokens, language });
  if (degrees !== null) return degrees;
  const [power, length] = [POWERS.get(next.core), tokens[at + 2]?.core ?? ''];
  if (language.base === 'en' && power !== undefined && isBeforeUnit(next) && LENGTHS.test(length)) {
    const unit = measureName(length, { isAttached: true }, number, language) ?? length;
    return { spoken: [amount, power, unit], fullStop: 'may-end' };
  }
  if (/^[A-Z]$/.test(next.core) && isInAddress(at, tokens)) return null;
  const name = measureName(next.core, { isAttached: isInches }, number, language);
  if (name === null) return null;
  return {
    spoken: [amount, name],
    ...(next.core.length > 1 && isShort(next.core) && { fullStop: 'may-end' as const }),
  };
}

/** One of the three words before it, within the sentence, is "BP" or "pressure". */
function isPressure(at: number, tokens: readonly Token[]): boolean {
  const near = tokens.slice(Math.max(0, at - 3), at);
  const start = near.findLastIndex(({ trail }) => /[.!?]/.test(trail)) + 1;
  return near.slice(start).some(({ core }) => /^(?:BP|pressure)$/.test(core));
}

const COUNTED_IN_MILLIONS =
  /^(?:people|users|customers|subscribers|followers|members|players|viewers|readers|visitors|views|downloads|installs|jobs|calls|sales|copies|dollars|euros|pounds|rupees)$/;

/** "1,200 sq. ft.", "10 cu ft" and "5 sq. miles". */
const POWERS: ReadonlyMap<string, string> = new Map([
  ['sq', 'square'],
  ['cu', 'cubic'],
]);
const LENGTHS = /^(?:ft|in|m|cm|mm|km|yds?|mi|feet|foot|inch(?:es)?|met(?:er|re)s?|yards?|miles?)$/;

function isBeforeUnit({ trail, endsParagraph }: Token): boolean {
  return /^\.?$/.test(trail) && !endsParagraph;
}

/** "25 degrees C", "72 deg. F", "minus 5 C", and "25 C" in a text about the temperature, but not "Seat 25 C". */
function readDegrees(at: number, amount: string, { tokens, language }: Context): Reading | null {
  if (language.base !== 'en') return null;
  const [next, letter] = tokens.slice(at + 1, at + 3);
  const unit = tokens[at]!.core === '1' ? 'degree' : 'degrees';
  if (
    /^deg(?:ree)?s?$/i.test(next!.core) &&
    (/^deg\.?$/i.test(next!.clean) || isOpen(next)) &&
    /^[CF]$/.test(letter?.core ?? '')
  ) {
    return { spoken: [amount, unit, SCALES[letter!.core]!] };
  }
  if (/^deg[CF]$/.test(next!.core)) return { spoken: [amount, `${unit} ${SCALES[next!.core.at(-1)!]}`] };
  const scale = SCALES[next!.core];
  if (scale === undefined || isNameWith(next!.core, at, { tokens, language })) return null;
  const near = tokens.slice(Math.max(0, at - 6), at).map(({ core }) => core);
  const isTemperature = /^(?:minus|[-+]\d.*)$/i.test(`${near.at(-1)}`) || near.some((word) => TEMPERATURES.test(word));
  return isTemperature || tokens[at]!.core.startsWith('-') ? { spoken: [amount, `${unit} ${scale}`] } : null;
}

const SCALES: Record<string, string> = { C: 'Celsius', F: 'Fahrenheit' };
const TEMPERATURES =
  /^(?:temps?|temperatures?|oven|heat|heated|preheat|cool|cooled|warm|warmer|cold|colder|hot|hotter|fever|thermostat|weather|freezer|fridge|boils?|freezes|melts)$/i;

const MEASURE = new RegExp(
  `^([-+]?[\\d.,]*\\d[${VULGAR_FRACTIONS}]?)(?:([^\\d\\s–-][^\\s–-]{0,9})?[-–]([\\d.,]*\\d))?-?([^\\d\\s-][^\\s-]{0,9})?$`,
  'u',
);

/** "Seat 14C", "Sec. 80C", "12A Main St.", "Hauptstraße 14C". */
function isNameWith(letter: string, at: number, { tokens, language }: Context): boolean {
  // Only English and Indian texts often omit the degree sign.
  if (language.phrases === null && /[CF]/.test(letter)) return true;
  return isNamedBefore(at, letter, tokens) || streetAfter(at, tokens) !== null;
}

/** "Keep the room 20C" and "In this hall, 20C" are temperatures. */
function isNamedBefore(at: number, letter: string, tokens: readonly Token[]): boolean {
  const thing = tokens[at - 1];
  const name = thing?.core.toLowerCase() ?? '';
  if (thing === undefined || !LETTERED_THINGS.has(name) || !/^[.:]?$/.test(thing.trail)) return false;
  return !(/[CF]/.test(letter) && PLACES.has(name) && isDeterminer(tokens[at - 2]));
}

/** "350 W. Oak Ave.", but not "It needs 60 W. Oak Street is dark.", which has two sentences. */
function isInAddress(at: number, tokens: readonly Token[]): boolean {
  const street = streetAfter(at + 1, tokens, '.');
  if (street === null) return false;
  const isMeasured = isOpen(tokens[at - 1]) && MEASURED.test(tokens[at - 1]!.core);
  return !isMeasured || !isOpen(tokens[street]) || !IS.test(tokens[street + 1]?.core ?? '');
}

const MEASURED =
  /^(?:has|have|had|is|was|uses?|used|needs?|needed|draws?|drew|takes?|took|holds?|consumes?|only|about)$/i;
const IS = /^(?:is|was|has|had|looks|needs|uses|draws)$/;

/** Where the street of "12A, Park Street" is, but not of "14C on Park Street": the name of a street has capitals. */
function streetAfter(at: number, tokens: readonly Token[], mark = ','): number | null {
  for (let word = at + 1; word < at + 4; word++) {
    const before = tokens[word - 1];
    const name = tokens[word]?.core ?? '';
    const isJoined = (word === at + 1 && before?.trail === mark && !before.endsParagraph) || isOpen(before);
    if (!isJoined || !/^[\p{Lu}\d]/u.test(name)) return null;
    if (STREETS.has(name.toLowerCase())) return word;
  }
  return null;
}

const STREETS: ReadonlySet<string> = new Set(
  'st street rd road ave avenue lane ln drive blvd boulevard court way place square terrace marg nagar'.split(' '),
);

/** Also reads the second of two units: "per hour". */
function measureName(
  asWritten: string,
  { isAttached }: { isAttached: boolean },
  amount: { whole: string; decimals: string | null },
  language: SpokenLanguage,
): string | null {
  const degree = language.base === 'en' ? /^º/ : /^º(?=[CF]$)/;
  const written = asWritten
    .replace(degree, '°')
    .replace(/(?<=\p{L})\^?[23]$/u, (power) => (power.endsWith('2') ? '²' : '³'));
  if (written === '%' || written === '٪' || written === '％') return language.percent;
  if (language.base === 'en') {
    const rate = RATES.get(written);
    if (rate !== undefined) {
      const [unit, per] = rate;
      const name = language.unit(unit, amount);
      return name === null ? null : `${name} per ${per}`;
    }
    const [, thing = '', time = ''] = PER_TIME.exec(written) ?? [];
    const counted = UNITS.has(thing) ? language.unit(UNITS.get(thing)!, amount) : COUNTED.test(thing) ? thing : null;
    if (counted !== null) return `${counted} per ${PER.get(time) ?? time}`;
  }
  const unit = UNITS.get(written) ?? (isAttached ? ATTACHED_UNITS.get(written) : undefined);
  return unit === undefined ? null : language.unit(unit, amount);
}

/** "24 hrs/day", "50 mg/day" and "10 calls/hr". */
const PER_TIME = /^([\p{L}µμ]{1,12})\/(second|sec|minute|min|hour|hr|day|week|wk|month|mo|year|yr)$/u;
const COUNTED = /^(?:hour|day|week|time|[a-z]{2,}s)$/;

/** Units that are also written with a full stop. */
function isShort(unit: string): boolean {
  return /^(hrs?|mins?|secs?|lbs?|oz|ft|kgs?|kms?|yds?|mi)$/.test(unit);
}

const UNITS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...{ km: 'kilometer', kms: 'kilometer', Km: 'kilometer', KM: 'kilometer', m: 'meter', cm: 'centimeter' },
    ...{ mm: 'millimeter', ft: 'foot', yd: 'yard', yds: 'yard', mi: 'mile', inch: 'inch' },
    ...{ kg: 'kilogram', kgs: 'kilogram', Kg: 'kilogram', KG: 'kilogram', g: 'gram', gm: 'gram', gms: 'gram' },
    ...{
      mg: 'milligram',
      mcg: 'microgram',
      µg: 'microgram',
      μg: 'microgram',
      lb: 'pound',
      lbs: 'pound',
      oz: 'ounce',
      qtl: 'quintal',
    },
    ...{ ml: 'milliliter', mL: 'milliliter', l: 'liter', L: 'liter', ltr: 'liter', gal: 'gallon' },
    ...{ '°C': 'celsius', '℃': 'celsius', '°F': 'fahrenheit', '℉': 'fahrenheit', '°': 'degree' },
    ...{ KB: 'kilobyte', kB: 'kilobyte', MB: 'megabyte', GB: 'gigabyte', TB: 'terabyte', PB: 'petabyte' },
    ...{ kb: 'kilobit', Mb: 'megabit', Gb: 'gigabit', kbps: 'kilobit-per-second', Mbps: 'megabit-per-second' },
    ...{ mbps: 'megabit-per-second', Gbps: 'gigabit-per-second' },
    ...{ Hz: 'hertz', kHz: 'kilohertz', MHz: 'megahertz', GHz: 'gigahertz', W: 'watt', kW: 'kilowatt', MW: 'megawatt' },
    ...{ kWh: 'kilowatt-hour', V: 'volt', mV: 'millivolt', mA: 'milliampere', dB: 'decibel' },
    ...{ hr: 'hour', hrs: 'hour', min: 'minute', mins: 'minute', sec: 'second', secs: 'second', ms: 'millisecond' },
    ...{
      kcal: 'kilocalorie',
      cal: 'calorie',
      kPa: 'kilopascal',
      rpm: 'revolution-per-minute',
      RPM: 'revolution-per-minute',
    },
    ...{ ppm: 'part-per-million', 'm²': 'square-meter', sqm: 'square-meter' },
    ...{
      'm³': 'cubic-meter',
      'km²': 'square-kilometer',
      sqft: 'square-foot',
      'ft²': 'square-foot',
      'm/s': 'meter-per-second',
    },
    ...{ 'cm²': 'square-centimeter', 'mm²': 'square-millimeter', 'cm³': 'cubic-centimeter' },
    ...{ ha: 'hectare', '¢': 'cent', µs: 'microsecond', μs: 'microsecond', tsp: 'teaspoon', tbsp: 'tablespoon' },
    ...{ 'km/h': 'kilometer-per-hour', 'किमी/घंटा': 'kilometer-per-hour' },
    ...{ किमी: 'kilometer', 'कि.मी': 'kilometer', কিমি: 'kilometer', கிமீ: 'kilometer', 'கி.மீ': 'kilometer' },
    ...{ కిమీ: 'kilometer', 'కి.మీ': 'kilometer', કિમી: 'kilometer', 'કિ.મી': 'kilometer', ಕಿಮೀ: 'kilometer' },
    ...{ 'ಕಿ.ಮೀ': 'kilometer', കിമീ: 'kilometer', 'കി.മീ': 'kilometer', ਕਿਮੀ: 'kilometer', କିମି: 'kilometer' },
    ...{ किग्रा: 'kilogram', 'कि.ग्रा': 'kilogram', सेमी: 'centimeter', 'से.मी': 'centimeter', मिमी: 'millimeter' },
    ...{ км: 'kilometer', кг: 'kilogram', см: 'centimeter', мм: 'millimeter' },
  }),
);

/** Ambiguous when they stand alone. */
const ATTACHED_UNITS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...{ s: 'second', h: 'hour', st: 'stone', A: 'ampere', in: 'inch', '"': 'inch', C: 'celsius', F: 'fahrenheit' },
  }),
);

const RATES: ReadonlyMap<string, readonly [unit: string, per: string]> = new Map(
  Object.entries<readonly [unit: string, per: string]>({
    ...{
      'km/h': ['kilometer', 'hour'],
      kmph: ['kilometer', 'hour'],
      kmh: ['kilometer', 'hour'],
      kph: ['kilometer', 'hour'],
    },
    ...{ mph: ['mile', 'hour'], 'mi/h': ['mile', 'hour'], 'km/s': ['kilometer', 'second'], 'm/s': ['meter', 'second'] },
    ...{ 'm/s²': ['meter', 'second squared'], 'm³/s': ['cubic-meter', 'second'], 'm³/h': ['cubic-meter', 'hour'] },
    ...{ 'MB/s': ['megabyte', 'second'], 'GB/s': ['gigabyte', 'second'], 'KB/s': ['kilobyte', 'second'] },
    ...{ 'km/l': ['kilometer', 'liter'], kmpl: ['kilometer', 'liter'], 'mg/dl': ['milligram', 'deciliter'] },
    ...{ 'kg/m³': ['kilogram', 'cubic meter'], 'mg/kg': ['milligram', 'kilogram'], 'g/l': ['gram', 'liter'] },
    ...{ 'g/cm³': ['gram', 'cubic centimeter'], 'W/m²': ['watt', 'square meter'] },
  }),
);
