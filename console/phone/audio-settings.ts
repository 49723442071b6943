/** Device settings, remembered in this browser. Null: the browser's default. */
export interface AudioSettings {
  readonly microphoneId: string | null;
  readonly speakerId: string | null;
  /** Output for ringing, such as the loudspeaker beside a headset. */
  readonly ringerId: string | null;
  /** Echo cancellation, noise suppression and automatic gain. */
  readonly isVoiceProcessed: boolean;
}

const STORED = 'tandem.audio';
const DEFAULTS: AudioSettings = { microphoneId: null, speakerId: null, ringerId: null, isVoiceProcessed: true };

let settings = read();
const watchers = new Set<() => void>();

export function audioSettings(): AudioSettings {
  return settings;
}

export function watchAudioSettings(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

export function changeAudioSettings(changes: Partial<AudioSettings>): void {
  settings = { ...settings, ...changes };
  try {
    localStorage.setItem(STORED, JSON.stringify(settings));
  } catch {
    // Storage may be forbidden. Then the choice lasts until the page closes.
  }
  for (const watcher of watchers) watcher();
}

function read(): AudioSettings {
  try {
    const stored = JSON.parse(localStorage.getItem(STORED) ?? '{}') as Record<string, unknown>;
    const idOf = (name: string) => (typeof stored[name] === 'string' ? stored[name] : null);
    return {
      microphoneId: idOf('microphoneId'),
      speakerId: idOf('speakerId'),
      ringerId: idOf('ringerId'),
      isVoiceProcessed: stored.isVoiceProcessed !== false,
    };
  } catch {
    return DEFAULTS;
  }
}
