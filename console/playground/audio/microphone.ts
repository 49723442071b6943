import workletUrl from './capture.worklet.ts?worker&url';

export type MicrophoneProblem = 'denied' | 'missing' | 'busy' | 'insecure';

/** The microphone cannot be used. */
export class MicrophoneError extends Error {
  override readonly name = 'MicrophoneError';
  readonly problem: MicrophoneProblem;

  constructor(problem: MicrophoneProblem, options?: ErrorOptions) {
    super(problem, options);
    this.problem = problem;
  }
}

export interface MicrophoneOptions {
  sampleRateHz: number;
  frameMs: number;
  onFrame: (samples: Int16Array) => void;
  /** The device was removed or its permission withdrawn. */
  onLost: () => void;
}

/** Opens the microphone until `close`. @throws MicrophoneError */
export async function openMicrophone(options: MicrophoneOptions): Promise<{ close: () => void }> {
  const stream = await microphoneStream();
  const context = new AudioContext();
  const close = () => {
    for (const track of stream.getTracks()) track.stop();
    if (context.state !== 'closed') void context.close();
  };
  try {
    await context.audioWorklet.addModule(workletUrl);
    const { sampleRateHz, frameMs } = options;
    const capture = new AudioWorkletNode(context, 'capture', {
      numberOfOutputs: 0,
      channelCount: 1,
      channelCountMode: 'explicit',
      processorOptions: { sampleRateHz, frameMs },
    });
    capture.port.onmessage = ({ data }: MessageEvent<Int16Array>) => options.onFrame(data);
    context.createMediaStreamSource(stream).connect(capture);
    stream.getAudioTracks()[0]!.onended = options.onLost;
    await context.resume();
    return { close };
  } catch (error) {
    close();
    throw error;
  }
}

async function microphoneStream(): Promise<MediaStream> {
  // Browsers hide devices from pages without TLS, except on localhost.
  if (navigator.mediaDevices === undefined) throw new MicrophoneError('insecure');
  const audio = { channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true };
  try {
    return await navigator.mediaDevices.getUserMedia({ audio });
  } catch (cause) {
    const { name } = cause as DOMException;
    const problem = name === 'NotAllowedError' ? 'denied' : name === 'NotFoundError' ? 'missing' : 'busy';
    throw new MicrophoneError(problem, { cause });
  }
}
