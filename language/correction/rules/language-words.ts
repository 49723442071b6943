const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/));

/** Words that nearly every longer English text contains. None is as common in a language below. */
export const COMMON_ENGLISH = words(
  `the and is are was were be been being have has had do does did will would can could should shall may might must
  i you he she it we they my your his her its our their this that these those what which who when where why how
  of to in for on with at by from about into over after before not no but or if so then than because while
  there here very just also please thanks thank hello hi yes let need want know think going get got make go see
  i'm i've i'll it's that's don't doesn't didn't can't won't isn't aren't you're we're they're
  dont doesnt didnt cant wont isnt arent im ive youre theyre thats whats lets`,
);

/** Words that nearly every text in another Latin-script language contains, and that are rare in English. */
export const COMMON_ELSEWHERE = words(
  `le la les un une des du et est sont dans pour avec que qui ne pas je tu il elle nous vous ils ce cette mais ou au aux
  ma mes votre notre bonjour merci der das und ist sind nicht ein eine einen dem den mit für auf ich du sie
  wir ihr von zu im auch wie aber oder bitte danke el los las una es en por para con que como pero muy está gracias hola
  il lo gli uno di che sono con più ma anche grazie ciao uma não é são mais você obrigado
  de het een ik je niet dat voor met zijn ook maar og det på som ikke att är och inte jag
  hai nahi nahin kya mera meri mere tum aap mujhe karna karo raha rahi kar ho haan yeh woh aur bhai accha
  yang ini itu saya tidak untuk bir ve bu için değil nie się jest `,
);
