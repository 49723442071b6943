import { type Argon2Parameters, argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { Gate } from '../runtime/gate.ts';

/** Argon2id (RFC 9106) with OWASP's parameters: 19 MiB, 2 passes, 1 lane. */
const CURRENT = { memory: 19_456, passes: 2, parallelism: 1 };
const TAG_BYTES = 32;

/** Hashes a password in PHC string format. Normalises it, so that every keyboard gives the same. */
export async function hashPassword(password: string): Promise<string> {
  const nonce = randomBytes(16);
  const tag = await derive(password, { ...CURRENT, nonce, tagLength: TAG_BYTES });
  const { memory, passes, parallelism } = CURRENT;
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(nonce)}$${unpadded(tag)}`;
}

export interface PasswordCheck {
  matches: boolean;
  /** The hash has old parameters: store a new one. */
  isOutdated: boolean;
}

/** Compares a password with a hash. Without a hash it takes the same time and never matches. */
export async function checkPassword(password: string, hash: string | null): Promise<PasswordCheck> {
  const stored = hash === null ? null : parseHash(hash);
  const { memory, passes, parallelism, nonce, tag } = stored ?? DECOY;
  const derived = await derive(password, { memory, passes, parallelism, nonce, tagLength: tag.length });
  const matches = timingSafeEqual(derived, tag) && stored !== null;
  const isCurrent =
    memory === CURRENT.memory &&
    passes === CURRENT.passes &&
    parallelism === CURRENT.parallelism &&
    tag.length === TAG_BYTES;
  return { matches, isOutdated: matches && !isCurrent };
}

interface StoredHash {
  memory: number;
  passes: number;
  parallelism: number;
  nonce: Buffer;
  tag: Buffer;
}

const DECOY: StoredHash = { ...CURRENT, nonce: randomBytes(16), tag: randomBytes(TAG_BYTES) };

const PHC = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]{11,})\$([A-Za-z0-9+/]{22,})$/;

function parseHash(hash: string): StoredHash | null {
  const [, memory, passes, parallelism, nonce, tag] = PHC.exec(hash) ?? [];
  if (tag === undefined) return null;
  return {
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    nonce: Buffer.from(nonce!, 'base64'),
    tag: Buffer.from(tag, 'base64'),
  };
}

async function derive(password: string, parameters: Omit<Argon2Parameters, 'message'>): Promise<Buffer> {
  return await deriving.run(async () =>
    Buffer.from(await promisify(argon2)('argon2id', { ...parameters, message: password.normalize('NFKC') })),
  );
}

/** Node has four threads for hashing, files and names. Many logins must not stop the writing of recordings. */
const deriving = new Gate({ inAll: 2 });
function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
