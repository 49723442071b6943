const STORED = 'tandem.workspace';

let current: string | null = read();
const watchers = new Set<() => void>();

/** The workspace of this page's requests. */
export function currentWorkspaceId(): string | null {
  return current;
}

/** Remembered for the next visit. Other tabs keep theirs, also when they are loaded again. */
export function enterWorkspace(id: string): void {
  if (id === current) return;
  current = id;
  try {
    sessionStorage.setItem(STORED, id);
    localStorage.setItem(STORED, id);
  } catch {
    // Storage may be forbidden. Then the choice lasts until the page closes.
  }
  for (const watcher of watchers) watcher();
}

function read(): string | null {
  try {
    const stored = sessionStorage.getItem(STORED) ?? localStorage.getItem(STORED);
    if (stored !== null) sessionStorage.setItem(STORED, stored);
    return stored;
  } catch {
    return null;
  }
}

/** Calls the watcher after each change, until the returned function is called. */
export function watchWorkspace(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}
