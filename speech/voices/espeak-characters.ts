import type { CatalogueVoice, VoiceAccent, VoiceCategory } from './catalogue.ts';

/** Personas made from eSpeak NG's voices, at least a woman and a man per tuned language. */
export interface EspeakCharacter {
  /** Engine voice without a variant, such as `en-us`. Determines the language. */
  base: string;
  name: string;
  timbre: Timbre;
  accent: VoiceAccent;
  categories: readonly VoiceCategory[];
}

/** Settings that give an eSpeak voice its character. */
export interface Timbre {
  /** Part of the description shown to people. */
  sound: string;
  gender: 'female' | 'male';
  age: NonNullable<CatalogueVoice['age']>;
  /** eSpeak NG variant: changes formants and pitch. */
  variant: string;
  pitchSemitones: number;
  pitchRange: number;
  /** Natural pace as a factor on the engine's own, which is hurried. */
  pace: number;
}

const TIMBRES = {
  clear: woman('A clear, even woman’s voice', { variant: 'f2', pitchSemitones: 0, pitchRange: 1.25, pace: 0.8 }),
  bright: woman('A bright, lively young woman’s voice', {
    age: 'young',
    variant: 'f3',
    pitchSemitones: 1,
    pitchRange: 1.45,
    pace: 0.85,
  }),
  calm: woman('A calm, low woman’s voice', { variant: 'f1', pitchSemitones: -1, pitchRange: 1.1, pace: 0.75 }),
  steady: man('A steady, plain man’s voice', { variant: 'm3', pitchSemitones: 0, pitchRange: 1.25, pace: 0.8 }),
  brisk: man('A brisk, light young man’s voice', {
    age: 'young',
    variant: 'm7',
    pitchSemitones: 2,
    pitchRange: 1.4,
    pace: 0.85,
  }),
  grave: man('A grave, deep older man’s voice', {
    age: 'old',
    variant: 'm2',
    pitchSemitones: -2,
    pitchRange: 1.1,
    pace: 0.72,
  }),
} satisfies Record<string, Timbre>;

const SERVICE = ['IVR/Call Center', 'Conversational', 'Corporate/Business'] as const;
const COUNTER = ['IVR/Call Center', 'Finance/Banking', 'Government/Public Sector'] as const;
const CARE = ['Medical/Healthcare', 'IVR/Call Center', 'Conversational'] as const;
const COMPANY = ['Advertisement', 'Social Media', 'Gaming'] as const;
const JOURNEY = ['Travel/Tourism', 'IVR/Call Center', 'News/Journalism'] as const;
const LESSON = ['E-Learning', 'Documentary', 'Corporate/Business'] as const;

/** In listing order; the first of a language is its default. */
export const ESPEAK_CHARACTERS: readonly EspeakCharacter[] = [
  person('en-us', 'Emily', 'clear', SERVICE, 'American'),
  person('en-us', 'James', 'steady', COUNTER, 'American'),
  person('en-us', 'Madison', 'bright', COMPANY, 'American'),
  person('en-us', 'Tyler', 'brisk', JOURNEY, 'American'),
  person('en-us', 'Karen', 'calm', CARE, 'American'),
  person('en-us', 'Walter', 'grave', LESSON, 'American'),
  person('en', 'Charlotte', 'clear', SERVICE, 'British'),
  person('en', 'Oliver', 'steady', COUNTER, 'British'),
  person('en-gb-x-rp', 'Beatrice', 'calm', LESSON, 'British'),
  person('en-gb-x-rp', 'Arthur', 'grave', LESSON, 'British'),
  person('en-gb-scotland', 'Isla', 'bright', JOURNEY, 'British'),
  person('en-gb-scotland', 'Callum', 'brisk', JOURNEY, 'British'),
  person('hi', 'Ananya', 'clear', SERVICE, 'Indian'),
  person('hi', 'Arjun', 'steady', COUNTER, 'Indian'),
  person('hi', 'Kavita', 'calm', CARE, 'Indian'),
  person('hi', 'Rajesh', 'grave', LESSON, 'Indian'),
  person('bn', 'Sharmila', 'clear', SERVICE, 'Indian'),
  person('bn', 'Anirban', 'steady', COUNTER, 'Indian'),
  person('ta', 'Nila', 'clear', SERVICE, 'Indian'),
  person('ta', 'Karthik', 'steady', COUNTER, 'Indian'),
  person('te', 'Sravani', 'clear', SERVICE, 'Indian'),
  person('te', 'Venkat', 'steady', COUNTER, 'Indian'),
  person('mr', 'Sayali', 'clear', SERVICE, 'Indian'),
  person('mr', 'Aniket', 'steady', COUNTER, 'Indian'),
  person('gu', 'Hetal', 'clear', SERVICE, 'Indian'),
  person('gu', 'Jignesh', 'steady', COUNTER, 'Indian'),
  person('kn', 'Chaitra', 'clear', SERVICE, 'Indian'),
  person('kn', 'Raghu', 'steady', COUNTER, 'Indian'),
  person('ml', 'Athira', 'clear', SERVICE, 'Indian'),
  person('ml', 'Sreejith', 'steady', COUNTER, 'Indian'),
  person('pa', 'Jasleen', 'clear', SERVICE, 'Indian'),
  person('pa', 'Amrik', 'steady', COUNTER, 'Indian'),
  person('or', 'Lopamudra', 'clear', SERVICE, 'Indian'),
  person('or', 'Biswajit', 'steady', COUNTER, 'Indian'),
  person('as', 'Jonali', 'clear', SERVICE, 'Indian'),
  person('as', 'Bhaskar', 'steady', COUNTER, 'Indian'),
  person('ur', 'Zainab', 'clear', SERVICE, 'Indian'),
  person('ur', 'Bilal', 'steady', COUNTER, 'Indian'),
  person('ne', 'Asmita', 'clear', SERVICE),
  person('ne', 'Bishal', 'steady', COUNTER),
  person('si', 'Nethmi', 'clear', SERVICE),
  person('si', 'Kasun', 'steady', COUNTER),
  person('es', 'Lucía', 'clear', SERVICE),
  person('es', 'Javier', 'steady', COUNTER),
  person('es-419', 'Valentina', 'bright', SERVICE),
  person('es-419', 'Mateo', 'brisk', COUNTER),
  person('fr', 'Élodie', 'clear', SERVICE),
  person('fr', 'Julien', 'steady', COUNTER),
  person('de', 'Katharina', 'clear', SERVICE),
  person('de', 'Lukas', 'steady', COUNTER),
  person('it', 'Giulia', 'clear', SERVICE),
  person('it', 'Lorenzo', 'steady', COUNTER),
  person('pt-br', 'Beatriz', 'bright', SERVICE),
  person('pt-br', 'Thiago', 'brisk', COUNTER),
  person('pt', 'Inês', 'clear', SERVICE),
  person('pt', 'Rui', 'steady', COUNTER),
  person('nl', 'Sanne', 'clear', SERVICE),
  person('nl', 'Daan', 'steady', COUNTER),
  person('pl', 'Agnieszka', 'clear', SERVICE),
  person('pl', 'Tomasz', 'steady', COUNTER),
  person('ru', 'Ekaterina', 'clear', SERVICE),
  person('ru', 'Dmitri', 'steady', COUNTER),
  person('uk', 'Oksana', 'clear', SERVICE),
  person('uk', 'Taras', 'steady', COUNTER),
  person('tr', 'Elif', 'clear', SERVICE),
  person('tr', 'Emre', 'steady', COUNTER),
  person('ar', 'Layla', 'clear', SERVICE),
  person('ar', 'Omar', 'steady', COUNTER),
  person('fa', 'Shirin', 'clear', SERVICE),
  person('fa', 'Dariush', 'steady', COUNTER),
  person('id', 'Dewi', 'clear', SERVICE),
  person('id', 'Budi', 'steady', COUNTER),
  person('ms', 'Aisyah', 'clear', SERVICE),
  person('ms', 'Hafiz', 'steady', COUNTER),
  person('vi', 'Linh', 'clear', SERVICE),
  person('vi', 'Tuấn', 'steady', COUNTER),
  person('sv', 'Astrid', 'clear', SERVICE),
  person('sv', 'Erik', 'steady', COUNTER),
  person('el', 'Eleni', 'clear', SERVICE),
  person('el', 'Nikos', 'steady', COUNTER),
  person('cs', 'Tereza', 'clear', SERVICE),
  person('cs', 'Jakub', 'steady', COUNTER),
  person('da', 'Freja', 'clear', SERVICE),
  person('da', 'Mikkel', 'steady', COUNTER),
  person('fi', 'Aino', 'clear', SERVICE),
  person('fi', 'Mikko', 'steady', COUNTER),
  person('ro', 'Ioana', 'clear', SERVICE),
  person('ro', 'Andrei', 'steady', COUNTER),
];

function person(
  base: string,
  name: string,
  timbre: keyof typeof TIMBRES,
  categories: readonly VoiceCategory[],
  accent: VoiceAccent = 'Neutral',
): EspeakCharacter {
  return { base, name, timbre: TIMBRES[timbre], accent, categories };
}

type Shape = Pick<Timbre, 'variant' | 'pitchSemitones' | 'pitchRange' | 'pace'> & { age?: Timbre['age'] };

function woman(sound: string, shape: Shape): Timbre {
  return { age: 'middle-aged', ...shape, sound, gender: 'female' };
}

function man(sound: string, shape: Shape): Timbre {
  return { age: 'middle-aged', ...shape, sound, gender: 'male' };
}
