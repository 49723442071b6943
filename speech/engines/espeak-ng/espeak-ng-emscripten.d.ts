declare module '@echogarden/espeak-ng-emscripten' {
  export interface EspeakEvent {
    type: 'sentence' | 'word' | 'mark' | 'play' | 'end' | 'phoneme' | 'samplerate';
    /** Of the first character, in code points from 1. */
    text_position: number;
    word_length: number;
    /** Milliseconds since `synthesize` was called. */
    audio_position: number;
  }

  export interface EspeakWorker {
    /** 0 when there is such a voice. */
    set_voice(name: string): number;
    /** Nominal words a minute, 80 to 450. */
    set_rate(rate: number): number;
    get_samplerate(): number;
    /** Blocks until all is spoken; the callback gets some 100 ms at a time, and ends it by answering true. */
    synthesize(text: string, onAudio: (samples: Int16Array, events: EspeakEvent[]) => boolean): void;
    list_voices(): { name: string; identifier: string; languages: { priority: number; name: string }[] }[];
  }

  export default function load(): Promise<{ eSpeakNGWorker: new () => EspeakWorker }>;
}
