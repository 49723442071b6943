/** State that keeps phone and call over a reload. */
export interface Remembered {
  /** From the last `welcome`. */
  readonly resumeToken: string;
  readonly workspaceId: string | null;
  readonly isMuted: boolean;
}

const STORED = 'tandem.phone';
const TAB = 'tandem.phone.tab';
const MOST_TRIES = 15;
const RETRY_MS = 100;

/** Stores in `sessionStorage`, which is separate per tab and survives a reload. */
export function remember(phone: Remembered | null): void {
  try {
    if (phone === null) sessionStorage.removeItem(STORED);
    else sessionStorage.setItem(STORED, JSON.stringify(phone));
  } catch {
    // Storage may be forbidden. Then a reload ends the call.
  }
}

/** Returns what this tab remembered before a reload. A duplicated tab must not take over the original's call. */
export async function recall(): Promise<Remembered | null> {
  try {
    const stored = sessionStorage.getItem(STORED);
    if (await lockTab()) return stored === null ? null : (JSON.parse(stored) as Remembered);
    remember(null);
    sessionStorage.removeItem(TAB);
    await lockTab();
  } catch {
    // As above.
  }
  return null;
}

/**
 * Holds a lock while this page is loaded. A duplicated tab has the same name in its copy of `sessionStorage`, but
 * cannot get the lock. After a reload the browser releases the old page's lock within moments.
 */
async function lockTab(): Promise<boolean> {
  // Browsers hide locks from plain http pages, which have no microphone either.
  if (!navigator.locks) return true;
  const name = sessionStorage.getItem(TAB) ?? crypto.randomUUID();
  sessionStorage.setItem(TAB, name);
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    if (await lock(`${TAB}.${name}`)) return true;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  return false;
}

/** False while another page has the lock. Limits the tries and not the time, because a busy page may be slow. */
async function lock(name: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  navigator.locks
    .request(name, { ifAvailable: true }, (granted) => {
      resolve(granted !== null);
      return granted === null ? undefined : new Promise<void>(() => {});
    })
    .catch(() => resolve(false));
  return await promise;
}
