import { TandemError } from '../../machines/errors.ts';

export const MIN_PASSWORD_LENGTH = 10;
export const MAX_PASSWORD_LENGTH = 256;

/**
 * Checks length and guessability (NIST SP 800-63B), not character classes.
 * @throws TandemError WEAK_PASSWORD
 */
export function requireStrongPassword(password: string, { email, name }: { email: string; name: string }): void {
  const letters = [...password.normalize('NFKC')];
  if (letters.length < MIN_PASSWORD_LENGTH) {
    throw weak(`It has ${letters.length} characters. Use at least ${MIN_PASSWORD_LENGTH}, for example four words.`);
  }
  const folded = password.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
  if (new Set(letters).size < 5) throw weak('It repeats a few characters. Use more different ones.');
  // A long password of symbols is hard to guess.
  if (folded === '') return;
  if (isRun(folded)) throw weak('It is a run of neighbouring characters. Use several unrelated words.');
  if (/^\d+$/.test(folded)) throw weak('It has only digits. Use several words.');
  const stem = folded.replace(/^\d+|\d+$/g, '');
  if (COMMON.has(stem) || COMMON.has(folded)) throw weak('It is one of the most common passwords. Use several words.');
  const own = [email, email.split('@')[0]!, name].map((text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, ''));
  if (own.some((text) => text.length >= 4 && (stem === text || folded === text))) {
    throw weak('It is your name or e-mail address. Use words that have nothing to do with you.');
  }
}

function isRun(text: string): boolean {
  return RUNS.some((run) => run.includes(text) || [...run].reverse().join('').includes(text));
}

const RUNS = [
  '01234567890123456789',
  'abcdefghijklmnopqrstuvwxyz',
  'qwertyuiopasdfghjklzxcvbnm',
  '1q2w3e4r5t6y7u8i9o0p',
];

const COMMON = new Set([
  'password',
  'passwordpassword',
  'passw0rd',
  'passphrase',
  'mypassword',
  'letmein',
  'letmeinplease',
  'welcome',
  'welcometo',
  'administrator',
  'admin',
  'adminadmin',
  'changeme',
  'changemenow',
  'iloveyou',
  'sunshine',
  'princess',
  'football',
  'baseball',
  'superman',
  'trustno',
  'qwerty',
  'qwertyqwerty',
  'qwertyuiop',
  'correcthorsebatterystaple',
  'tandem',
  'tandemtandem',
  'secretsecret',
  'testtest',
  'testpassword',
]);

function weak(reason: string): TandemError {
  return new TandemError('WEAK_PASSWORD', `Choose another password. ${reason}`);
}
