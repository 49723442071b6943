/**
 * The effect of eSpeak NG's controls, measured on Article 1 of the Universal Declaration of Human Rights in American
 * English, German, Hindi and Spanish, with a male and a female variant. Linear between the points. The nominal numbers
 * are not to scale: 300 words per minute is 1.6 times the pace of 175.
 */
type Curve = readonly (readonly [asked: number, control: number])[];

const RATE_OF_SPEED: Curve = [
  [0.485, 80],
  [0.517, 90],
  [0.574, 100],
  [0.66, 115],
  [0.75, 130],
  [0.86, 150],
  [1, 175],
  [1.136, 200],
  [1.297, 230],
  [1.44, 260],
  [1.618, 300],
  [1.848, 350],
  [2.068, 400],
  [2.294, 450],
];

const [[SLOWEST_SPEED]] = RATE_OF_SPEED as [Curve[number]];
const MOST_STRETCH = 4;

const PITCH_OF_SEMITONES: Curve = [
  [-8, 0],
  [-6.5, 10],
  [-5.2, 20],
  [-3.6, 30],
  [-1.9, 40],
  [0, 50],
  [1.85, 60],
  [3.75, 70],
  [5.8, 80],
  [7.75, 90],
  [9.6, 99],
];

const RANGE_OF_FACTOR: Curve = [
  [0, 0],
  [0.27, 10],
  [0.57, 25],
  [1, 50],
  [1.38, 75],
  [1.65, 99],
];

/** In semitones. A wider range starts at the same bottom, so it raises the median. */
const LIFT_OF_RANGE: Curve = [
  [0, -2.5],
  [10, -2.05],
  [25, -1.25],
  [50, 0],
  [75, 1.2],
  [99, 2.35],
];

export interface EspeakControls {
  rate: number;
  pitch: number;
  range: number;
  /** Factor for stretching the output, because eSpeak NG cannot go below its lowest rate. */
  stretch: number;
}

/** Values beyond eSpeak NG's range become the nearest possible. */
export function controlsFor(asked: { speed: number; pitchSemitones: number; pitchRange: number }): EspeakControls {
  const range = interpolate(RANGE_OF_FACTOR, asked.pitchRange);
  const lift = interpolate(LIFT_OF_RANGE, range);
  return {
    rate: Math.round(interpolate(RATE_OF_SPEED, asked.speed)),
    pitch: Math.round(interpolate(PITCH_OF_SEMITONES, asked.pitchSemitones - lift)),
    range: Math.round(range),
    stretch: Math.min(MOST_STRETCH, Math.max(1, SLOWEST_SPEED / asked.speed)),
  };
}

function interpolate(curve: Curve, asked: number): number {
  const after = curve.findIndex(([x]) => x >= asked);
  if (after === 0) return curve[0]![1];
  if (after < 0) return curve.at(-1)![1];
  const [x0, y0] = curve[after - 1]!;
  const [x1, y1] = curve[after]!;
  return y0 + ((asked - x0) / (x1 - x0)) * (y1 - y0);
}
