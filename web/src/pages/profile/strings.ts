import { texts } from "../../i18n/index";

export const t = texts({
  en: {
    note: "Every agent sees this at the start of a session.",
    identity: "Who you are",
    identityPurpose: "Your name, your work, your machines and languages. Two or three sentences are enough.",
    profile: "How you want things done",
    profilePurpose:
      "Rules for all projects: the style of answers, actions that need your consent, files never to touch. Agents can propose preferences, but only you write here.",
  },
  zh: {
    note: "每次会话开始时以你的话告诉所有代理的内容。",
    identity: "你是谁",
    identityPurpose: "代理为谁工作:你的名字、工作、使用的机器和语言。两三句话就够。",
    profile: "你希望怎样做事",
    profilePurpose:
      "在所有项目中都成立的要求:回答怎样写、做之前要问什么、绝不能碰什么。代理可以提议偏好,但只有你能在这里书写。",
  },
});
