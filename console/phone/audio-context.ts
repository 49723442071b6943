let shared: AudioContext | null = null;

/** Audio context for tones and meters. Browsers keep it silent until the user clicks or presses a key. */
export function audioContext(): AudioContext {
  if (shared === null) {
    const context = new AudioContext();
    const wake = () => void context.resume().catch(() => {});
    addEventListener('pointerdown', wake);
    addEventListener('keydown', wake);
    shared = context;
  }
  if (shared.state === 'suspended') void shared.resume().catch(() => {});
  return shared;
}
