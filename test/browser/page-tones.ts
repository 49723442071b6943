/** A page, and the expression of the audio stream that it plays. */
export interface PlayingPage {
  page: { evaluate(expression: string): Promise<unknown> };
  stream: string;
}

/** Waits until the page plays a tone. A tone has about -20 dB, silence far less than -60 dB. */
export async function untilPlayed({ page, stream }: PlayingPage, frequencyHz: number): Promise<void> {
  await page.evaluate(`(${UNTIL_LEVEL})(${stream}, ${frequencyHz}, (levelDb) => levelDb > -45)`);
}

/** Waits until the page no longer plays a tone. */
export async function untilNotPlayed({ page, stream }: PlayingPage, frequencyHz: number): Promise<void> {
  await page.evaluate(`(${UNTIL_LEVEL})(${stream}, ${frequencyHz}, (levelDb) => levelDb < -70)`);
}

const UNTIL_LEVEL = `async (stream, frequencyHz, isEnough) => {
  if (globalThis.toneMeter?.stream !== stream) {
    const context = new AudioContext();
    const analyser = new AnalyserNode(context, { fftSize: 4096, smoothingTimeConstant: 0 });
    context.createMediaStreamSource(stream).connect(analyser);
    globalThis.toneMeter = { stream, context, analyser };
  }
  const { context, analyser } = globalThis.toneMeter;
  const spectrum = new Float32Array(analyser.frequencyBinCount);
  const bin = Math.round((frequencyHz * analyser.fftSize) / context.sampleRate);
  for (;;) {
    analyser.getFloatFrequencyData(spectrum);
    if (isEnough(Math.max(...spectrum.subarray(bin - 2, bin + 3)))) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}`;
