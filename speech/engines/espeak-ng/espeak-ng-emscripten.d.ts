declare module '@echogarden/espeak-ng-emscripten' {
  export interface EspeakEvent {
    type: 'sentence' | 'word' | 'mark' | 'play' | 'end' | 'phoneme' | 'samplerate';
    /** Position of the first character, in code points from 1. */
    text_position: number;
    word_length: number;
    /** Milliseconds since `synthesize` was called. */
    audio_position: number;
    /** For a phoneme, its IPA. */
    id?: string | number;
  }

  export interface EspeakWorker {
    /** Returns 0 if the voice exists. */
    set_voice(name: string): number;
    /** Nominal words per minute, 80 to 450. */
    set_rate(rate: number): number;
    /** 0 to 99; 50 is the voice's own. */
    set_pitch(pitch: number): number;
    /** Range of the pitch, 0 to 99; 50 is the voice's own. */
    set_range(range: number): number;
    get_samplerate(): number;
    /** Blocks until the end; the callback receives about 100 ms at a time, and stops it by returning true. */
    synthesize(text: string, onAudio: (samples: Int16Array, events: EspeakEvent[]) => boolean): void;
    list_voices(): { name: string; identifier: string; languages: { priority: number; name: string }[] }[];
  }

  export interface EspeakFiles {
    readFile(path: string): Uint8Array;
    analyzePath(path: string): { exists: boolean };
  }

  export default function load(): Promise<{ eSpeakNGWorker: new () => EspeakWorker; FS: EspeakFiles }>;
}
