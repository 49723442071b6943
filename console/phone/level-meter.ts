/** Loudness meter of an audio track. */
export interface LevelMeter {
  /** From 0 (below -60 dB) to 1 (full scale), over the last 20 ms or so. */
  level(): number;
  close(): void;
}

const FLOOR_DB = -60;
const WINDOW_SAMPLES = 1024;

export function meterOf(context: AudioContext, track: MediaStreamTrack): LevelMeter {
  const source = context.createMediaStreamSource(new MediaStream([track]));
  const analyser = context.createAnalyser();
  analyser.fftSize = WINDOW_SAMPLES;
  source.connect(analyser);
  const samples = new Float32Array(WINDOW_SAMPLES);
  return {
    level() {
      analyser.getFloatTimeDomainData(samples);
      let power = 0;
      for (const sample of samples) power += sample * sample;
      const levelDb = 10 * Math.log10(power / WINDOW_SAMPLES + Number.MIN_VALUE);
      return Math.min(1, Math.max(0, 1 - levelDb / FLOOR_DB));
    },
    close: () => source.disconnect(),
  };
}
