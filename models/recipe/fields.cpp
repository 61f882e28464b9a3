// The list of a recipe's fields: the one place where an option is written down.
#include "models/base/text.h"
#include "models/families/families.h"
#include "models/library/standard.h"
#include "models/recipe/measures.h"
#include "models/recipe/recipe.h"

namespace celloom::recipe {
namespace {

constexpr double kMaxWhole = 9007199254740991; // 2^53 - 1: whole in every JSON reader

/// A field under construction: Entry(...).range(0, 1).advanced() reads like the table it is.
struct Entry {
    Field field;

    Entry(std::string section, std::string key, FieldKind kind, FieldValue standard, std::string label, std::string labelZh,
          std::string help, std::string helpZh) {
        field.key = std::move(key);
        field.section = std::move(section);
        field.kind = kind;
        field.standard = std::move(standard);
        field.label = std::move(label);
        field.labelZh = std::move(labelZh);
        field.help = std::move(help);
        field.helpZh = std::move(helpZh);
        if (kind == FieldKind::Integer) field.maximum = kMaxWhole;
    }
    Entry range(double minimum, double maximum) && {
        field.minimum = minimum;
        field.maximum = maximum;
        return std::move(*this);
    }
    Entry atLeast(double minimum) && {
        field.minimum = minimum;
        return std::move(*this);
    }
    Entry choices(std::vector<std::string> names) && {
        field.choices = std::move(names);
        return std::move(*this);
    }
    Entry unit(std::string english, std::string chinese) && {
        field.unit = std::move(english);
        field.unitZh = std::move(chinese);
        return std::move(*this);
    }
    Entry advanced() && {
        field.isAdvanced = true;
        return std::move(*this);
    }
    Entry when(std::string condition) && {
        field.shownWhen = std::move(condition);
        return std::move(*this);
    }
};

using Texts = std::vector<std::string>;
constexpr auto integer = FieldKind::Integer;
constexpr auto real = FieldKind::Real;
constexpr auto flag = FieldKind::Flag;
constexpr auto choice = FieldKind::Choice;
constexpr auto text = FieldKind::Text;
constexpr auto path = FieldKind::Path;
constexpr auto pathList = FieldKind::PathList;
constexpr auto textList = FieldKind::TextList;

constexpr const char* kWhenTraining = "kind=pretrain|finetune";
constexpr const char* kWhenPlainText = "kind=pretrain|evaluate&data.format=auto|text||kind=finetune&data.format=text";

FieldValue whole(std::int64_t value) {
    return value;
}
FieldValue word(const char* value) {
    return std::string(value);
}

Texts losses() {
    Texts out{"LanguageModel"};
    out.insert(out.end(), lossTypes().begin(), lossTypes().end());
    return out;
}

void addGeneral(std::vector<Entry>& out) {
    out.push_back(Entry("general", "kind", choice, word("pretrain"), "Kind of run", "运行类型",
                        "What the run does. pretrain: every weight learns from text. finetune: goes on from a base's weights, by LoRA or whole. evaluate: "
                        "measures a model on data. predict: lets a model continue, or answer, every prompt of a file.",
                        "运行做什么。pretrain：所有权重都从文本中学习。finetune：在已有权重上继续训练，用 LoRA 或训练全部权重。evaluate：在数据上评估一个模型。"
                        "predict：让模型续写或回答文件中的每一条提示。")
                      .choices({"pretrain", "finetune", "evaluate", "predict"}));
    out.push_back(Entry("general", "name", text, word(""), "Name", "名称", "Shown in the history. Empty: the model's name.",
                        "显示在历史记录中。留空则用模型名。"));
    out.push_back(
        Entry("general", "seed", integer, whole(0), "Seed", "随机种子",
              "Start of every random draw: initial weights, order of the data, dropout, samples. The same seed, recipe, device and thread "
              "count give the same run.",
              "一切随机数的起点：初始权重、数据顺序、dropout、采样。种子、配方、设备和线程数相同，运行结果就相同。")
            .range(0, kMaxWhole));
    out.push_back(Entry("general", "device", choice, word("auto"), "Device", "设备",
                        "Where the run computes. auto: the GPU when there is one, else the processor.",
                        "在哪里计算。auto：有 GPU 用 GPU，否则用处理器。")
                      .choices({"auto", "cpu", "cuda"}));
    out.push_back(Entry("general", "threads", integer, whole(0), "Threads", "线程数",
                        "Processor threads of the run. 0: all cores. A resumed run keeps its number, since it changes the last digits.",
                        "运行使用的处理器线程数。0：全部核心。续训时保持不变，因为它会影响最后几位数字。")
                      .range(0, 4096)
                      .unit("threads", "线程")
                      .advanced());
}

void addModel(std::vector<Entry>& out) {
    Texts presets;
    for (const auto& preset : families::presets()) presets.push_back(preset.name);
    for (const auto& made : library::templates()) presets.push_back(made.name);
    out.push_back(Entry("model", "model.source", path, word("baichuan-tiny"), "Model", "模型",
                        "The network: the name of a preset or a template, a folder with a config.json, or a .cells.json document.",
                        "网络结构：预设名或模板名、含 config.json 的文件夹，或 .cells.json 文档。")
                      .choices(std::move(presets))
                      .when(kWhenTraining));
    out.push_back(Entry("model", "model.overrides", textList, Texts{}, "Overrides", "覆盖超参数",
                        "Hyper-parameters of the model to change, each as name=value: \"layers=4\".",
                        "要改动的模型超参数，每项写成 名称=值，如 “layers=4”。")
                      .when(kWhenTraining));
    out.push_back(Entry("model", "model.weights", path, word(""), "Weights", "权重",
                        "A model folder, a checkpoint or a run. A training starts from its weights; empty: from scratch. An evaluation measures it, a "
                        "prediction lets it write.",
                        "模型文件夹、检查点或一次运行。训练从其权重开始，留空则从零开始；评估测量它，预测由它写作。"));
    out.push_back(Entry("model", "model.adapters", pathList, Texts{}, "Adapters", "适配器",
                        "LoRA adapters beside the weights: folders that PEFT or Celloom saved, or runs that trained one. A run that is named as the weights "
                        "brings its own.",
                        "放在权重旁的 LoRA 适配器：PEFT 或 Celloom 保存的文件夹，或训练过适配器的运行。作为权重给出的运行自带其适配器。")
                      .when("kind=evaluate|predict"));
    out.push_back(Entry("model", "model.init_std", real, 0.02, "Initial spread", "初始标准差",
                        "Standard deviation of the normal distribution that weight matrices are drawn from; norms start at 1, biases at 0.",
                        "权重矩阵初始正态分布的标准差；归一化权重从 1 开始，偏置从 0 开始。")
                      .range(0, 10)
                      .advanced()
                      .when(kWhenTraining));
}

void addTokenizer(std::vector<Entry>& out) {
    out.push_back(Entry("tokenizer", "tokenizer.path", path, word(""), "Tokenizer", "分词器",
                        "A SentencePiece tokenizer.model. Empty: the one beside the weights; a pretraining from scratch trains one on its training files (never on "
                        "the validation files).",
                        "SentencePiece 的 tokenizer.model。留空则用权重自带的分词器；从零预训练时用训练文件训练一个（不使用验证文件）。"));
    out.push_back(Entry("tokenizer", "tokenizer.vocab_size", integer, whole(4096), "Vocabulary", "词表大小",
                        "Pieces of the tokenizer that is trained. The model's vocabulary follows unless overridden.",
                        "所训练分词器的词元数。除非覆盖，模型词表随之确定。")
                      .range(64, 1000000)
                      .unit("pieces", "词元")
                      .when("kind=pretrain&tokenizer.path="));
    out.push_back(Entry("tokenizer", "tokenizer.type", choice, word("bpe"), "Algorithm", "分词算法",
                        "bpe merges frequent pairs; unigram prunes a large vocabulary by likelihood.",
                        "bpe 合并高频字对；unigram 按似然裁剪大词表。")
                      .choices({"bpe", "unigram"})
                      .advanced()
                      .when("kind=pretrain&tokenizer.path="));
    out.push_back(Entry("tokenizer", "tokenizer.character_coverage", real, 0.9995, "Character coverage", "字符覆盖率",
                        "Share of the text's characters that get a piece of their own; the rest is written as bytes.",
                        "拥有独立词元的字符占文本的比例；其余字符按字节表示。")
                      .range(0.98, 1) // what SentencePiece takes
                      .advanced()
                      .when("kind=pretrain&tokenizer.path="));
    out.push_back(Entry("tokenizer", "tokenizer.control_symbols", textList, Texts{}, "Control symbols", "控制符号",
                        "Extra pieces that no text is ever encoded to, for chat templates to use later: <eoh>, <eoa>.",
                        "额外的词元，任何文本都不会被编码成它们，供以后的对话模板使用：<eoh>、<eoa>。")
                      .advanced()
                      .when("kind=pretrain&tokenizer.path="));
    out.push_back(Entry("tokenizer", "tokenizer.user_symbols", textList, Texts{}, "Whole symbols", "整体符号",
                        "Extra pieces that stay whole wherever a text has them: <|User|>, <|Bot|>.",
                        "额外的词元，文本中出现时保持整体不拆分：<|User|>、<|Bot|>。")
                      .advanced()
                      .when("kind=pretrain&tokenizer.path="));
}

void addImages(std::vector<Entry>& out) {
    constexpr const char* whenImages = "data.format=images";
    out.push_back(Entry("data", "data.image_channels", choice, word("3"), "Channels", "通道数", "3: red, green, blue. 1: grey.", "3：红、绿、蓝。1：灰度。")
                      .choices({"1", "3"})
                      .when(whenImages));
    for (const auto& [key, label, labelZh] : {std::tuple("data.image_width", "Width", "宽度"), std::tuple("data.image_height", "Height", "高度")})
        out.push_back(Entry("data", key, integer, whole(0), label, labelZh,
                            "Images are brought to this size, stretched where their shape is another; bilinear, smoothed where they become smaller. 0 for both sides: "
                            "they stay as they are, and must all have one size.",
                            "把图像缩放到该尺寸，长宽比不同时会拉伸；双线性插值，缩小时抗锯齿。两边都为 0：保持原样，此时所有图像尺寸必须相同。")
                          .range(0, 16384)
                          .unit("pixels", "像素")
                          .when(whenImages));
    out.push_back(Entry("data", "data.image_crop", integer, whole(0), "Random shift", "随机平移",
                        "In training each image is shifted anew by up to so many pixels, its border filled with black. 0: off.",
                        "训练时每次把图像随机平移至多这么多像素，边缘补黑。0：关闭。")
                      .range(0, 4096)
                      .unit("pixels", "像素")
                      .when(whenImages));
    out.push_back(Entry("data", "data.image_flip", flag, false, "Random mirroring", "随机镜像",
                        "In training each image is mirrored left to right with one chance in two. Not for digits or text.", "训练时以二分之一的概率左右镜像。不适用于数字或文字。")
                      .when(whenImages));
    out.push_back(Entry("data", "data.image_mean", textList, Texts{}, "Mean", "均值",
                        "Taken off each channel's values, which lie between 0 and 1: a number for each channel, or one for all. Empty: 0.",
                        "从各通道的值（0 到 1 之间）中减去：每通道一个数，或共用一个。留空：0。")
                      .when(whenImages));
    out.push_back(Entry("data", "data.image_deviation", textList, Texts{}, "Spread", "标准差",
                        "What each channel's values are then divided by: a number for each channel, or one for all. Empty: 1.",
                        "随后各通道的值除以它：每通道一个数，或共用一个。留空：1。")
                      .when(whenImages));
}

void addData(std::vector<Entry>& out) {
    out.push_back(Entry("data", "data.train", pathList, Texts{}, "Training files", "训练文件",
                        "Text files or token files to learn from. Folders and patterns such as corpus/*.txt may be given.",
                        "用于学习的文本文件或词元文件。可以给出文件夹或 corpus/*.txt 这样的模式。")
                      .when("kind!=predict"));
    out.push_back(
        Entry("data", "data.format", choice, word("auto"), "Format", "格式",
              "text: plain text. tokens: safetensors with input_ids [rows, length] and optional labels. tensors: safetensors of named columns [rows, …] that "
              "feed the graph's inputs and the loss's labels by name. images: folders with a sub-folder of PNG and JPEG files for each class, which become the "
              "columns image [channels, height, width] and label. Instructions, as JSON or JSON Lines: "
              "alpaca (instruction, input, output, or columns of other names), sharegpt (conversations) or messages (role, content). auto: by the "
              "file's ending and, of instructions, by the keys of the first row; what was found is shown.",
              "text：纯文本。tokens：含 input_ids [行数, 长度]、可选 labels 的 safetensors。tensors：由具名列 [行数, …] 组成的 safetensors，按名称送入图的输入和损失的标签。images：文件夹，每个类别一个含 PNG、JPEG 文件的子文件夹，成为列 image [通道, 高, 宽] 和 label。指令数据（JSON 或 JSON Lines）：alpaca（instruction、input、output "
              "或其他列名）、sharegpt（conversations）、messages（role、content）。auto：按扩展名判断，指令数据再按首行的键判断，并显示结果。")
            .choices({"auto", "text", "tokens", "tensors", "images", "alpaca", "sharegpt", "messages"}));
    out.push_back(Entry("data", "data.columns", textList, Texts{}, "Columns", "列名",
                        "Names of the columns in an alpaca file where they are not the usual ones: \"question=Frage\", \"answer=Antwort\"; also input and "
                        "system.",
                        "alpaca 文件的列名不是常见名称时在此给出：“question=问”、“answer=答”，另有 input 和 system。")
                      .advanced()
                      .when("kind!=pretrain&data.format=auto|alpaca"));
    out.push_back(Entry("data", "data.encoding", choice, word("auto"), "Encoding", "文字编码",
                        "Encoding of the text files. auto detects it for each file and shows what was found.",
                        "文本文件的编码。auto 逐个文件检测并显示结果。")
                      .choices({"auto", "utf-8", "utf-16", "gb18030"})
                      .when("data.format!=tokens"));
    out.push_back(Entry("data", "data.validation", pathList, Texts{}, "Validation files", "验证文件",
                        "Files that are never learned from, to measure the loss on. Empty: a part of the training files is held out, the same one in a training "
                        "and in an evaluation with the same seed.",
                        "从不参与学习、只用来测量损失的文件。留空则从训练文件中留出一部分；种子相同时，训练与评估留出的部分相同。")
                      .when("kind!=predict"));
    out.push_back(Entry("data", "data.validation_fraction", real, 0.05, "Held-out part", "验证比例",
                        "Share of the documents held out for validation when no validation files are given. 0: no validation.",
                        "没有给出验证文件时，留作验证的文档比例。0：不验证。")
                      .range(0, 0.9)
                      .when("kind!=predict&data.validation="));
    out.push_back(
        Entry("data", "data.documents", choice, word("file"), "Documents", "文档划分",
              "What one document is: a whole file, each line, or each block of lines between blank lines. Documents end with the end token "
              "and are held out whole.",
              "一个文档是什么：整个文件、每一行，或空行之间的一段。每个文档以结束词元收尾，并整篇留作验证。")
            .choices({"file", "paragraph", "blank-line"})
            .when(kWhenPlainText));
    out.push_back(
        Entry("data", "data.attention", choice, word("full"), "Attention across documents", "跨文档注意力",
              "full: a packed sequence is one context. document: attention stops at document borders and positions restart there.",
              "full：一条拼接序列是一个上下文。document：注意力止于文档边界，位置重新计数。")
            .choices({"full", "document"})
            .advanced()
            .when(kWhenPlainText));
    addImages(out);
    constexpr const char* whenTuning = "kind=finetune";
    constexpr const char* whenAnswers = "kind=finetune|evaluate&data.format=auto|alpaca|sharegpt|messages";
    out.push_back(Entry("data", "data.template", choice, word("auto"), "Chat template", "对话模板",
                        "How questions and answers become tokens, the same in training and in prediction. auto: the one stored with the base, else "
                        "that of the model's family.",
                        "问答如何变成词元，训练与预测相同。auto：用基座自带的模板，没有时用该模型系列的模板。")
                      .choices({"auto", "baichuan", "baichuan2", "internlm", "internlm2", "internlm3", "chatml", "plain"})
                      .when("kind=finetune|evaluate|predict"));
    out.push_back(Entry("data", "data.mask_prompt", flag, true, "Learn answers only", "只学习回答",
                        "Only answers and the tokens that end them count in the loss. Off: every token counts.",
                        "只有回答及其结束词元计入损失。关闭：所有词元都计入。")
                      .when(whenAnswers));
    out.push_back(Entry("data", "data.truncation", choice, word("keep-answer"), "Too long", "超长处理",
                        "What happens to a conversation longer than the sequence. keep-answer: its oldest rounds go, then the beginning of its last "
                        "question. cut-start, cut-end: its first or last tokens go. drop: it is left out. How many were touched is shown.",
                        "对话超过序列长度时如何处理。keep-answer：先去掉最早的轮次，再去掉最后一问的开头。cut-start、cut-end：去掉开头或结尾的词元。drop：整条"
                        "舍弃。会显示受影响的条数。")
                      .choices({"keep-answer", "cut-start", "cut-end", "drop"})
                      .when(whenAnswers));
    out.push_back(Entry("data", "data.untrainable", choice, word("drop"), "Nothing to learn", "无可学内容",
                        "Conversations in which no label is left after shortening: drop leaves them out, keep lets them take part without effect.",
                        "截短后没有任何标签的对话：drop 舍弃，keep 保留但不起作用。")
                      .choices({"drop", "keep"})
                      .advanced()
                      .when(whenTuning));
    out.push_back(Entry("data", "data.packing", flag, false, "Packing", "拼接",
                        "Put several short conversations into one sequence. Each attends to itself alone and has its own positions.",
                        "把多条短对话放进一条序列；各自只关注自身，位置各自计数。")
                      .when(whenAnswers));
    out.push_back(Entry("data", "data.group_by_length", flag, false, "Group by length", "按长度分组",
                        "Batches of conversations of about the same length: less padding, an order that is a little less random.",
                        "每批取长度相近的对话：填充更少，顺序的随机性略减。")
                      .advanced()
                      .when(whenTuning));
    out.push_back(Entry("data", "data.shuffle", flag, true, "Shuffle", "打乱顺序", "Draw the sequences of each epoch in a new order.",
                        "每轮以新的顺序取序列。")
                      .when(kWhenTraining));
}

void addTraining(std::vector<Entry>& out) {
    out.push_back(Entry("train", "train.batch_size", integer, whole(8), "Batch size", "批大小",
                        "Sequences computed at once. More need more memory.", "一次计算的序列数。越大越占内存。")
                      .range(1, 1048576)
                      .unit("sequences", "序列")
                      .when("kind!=predict"));
    out.push_back(Entry("train", "train.accumulation", integer, whole(1), "Gradient accumulation", "梯度累积",
                        "Batches whose gradients are added before one optimizer step, weighed by their valid tokens.",
                        "每次优化器更新前累加多少批的梯度，按有效词元加权。")
                      .range(1, 1048576)
                      .unit("batches", "批"));
    out.push_back(Entry("train", "train.sequence_length", integer, whole(256), "Sequence length", "序列长度",
                        "Tokens of one sequence, the model's context in training.", "一条序列的词元数，即训练时的上下文长度。")
                      .range(2, 1048576)
                      .unit("tokens", "词元")
                      .when("kind!=predict"));
    out.push_back(
        Entry("train", "train.epochs", integer, whole(1), "Epochs", "轮数", "Passes over the training data.", "遍历训练数据的次数。")
            .range(1, 1000000)
            .unit("epochs", "轮"));
    out.push_back(Entry("train", "train.max_steps", integer, whole(0), "Steps", "步数上限",
                        "Optimizer steps of the run; the data is repeated as needed and epochs are not looked at. 0: by epochs.",
                        "运行的优化器步数；数据按需重复，不再看轮数。0：由轮数决定。")
                      .range(0, 1e12)
                      .unit("steps", "步"));
    out.push_back(Entry("train", "train.max_minutes", real, 0.0, "Time limit", "时间上限",
                        "The run saves and ends after this much training time. 0: no limit.", "训练达到该时长后保存并结束。0：不限。")
                      .range(0, 10000000)
                      .unit("minutes", "分钟"));
    out.push_back(Entry("train", "loss.type", choice, word("LanguageModel"), "Loss", "损失",
                        "What training makes small. LanguageModel: cross-entropy of the next token. The others compare an output of the graph with a "
                        "column of the data and are MindSpore's of that name; cross-entropy takes numbers of classes or a share for each.",
                        "训练所减小的量。LanguageModel：下一词元的交叉熵。其余各项把图的一个输出与数据的一列比较，与 MindSpore 的同名损失一致；交叉熵可接受类别编号或各类的比例。")
                      .choices(losses())
                      .when("data.format=tensors|images"));
    out.push_back(Entry("train", "loss.terms", textList, Texts{}, "Loss terms", "损失项",
                        "Several outputs, each with its own loss and weight: \"logits -> label: SoftmaxCrossEntropyWithLogits weight=0.3\". Empty: the "
                        "graph's only output against the only column that is no input, with the loss above.",
                        "多个输出，各有自己的损失和权重：“logits -> label: SoftmaxCrossEntropyWithLogits weight=0.3”。留空：图的唯一输出与唯一非输入列比较，用上面的损失。")
                      .when("data.format=tensors|images"));
    out.push_back(Entry("train", "loss.label_smoothing", real, 0.0, "Label smoothing", "标签平滑",
                        "Share of the target that is spread evenly over all classes in a cross-entropy. Of language models in training alone: validation "
                        "losses stay comparable. 0: off.",
                        "交叉熵中平均分给所有类别的目标比例。语言模型仅在训练中使用，验证损失仍可比较。0：关闭。")
                      .range(0, 0.999)
                      .advanced());
    out.push_back(Entry("train", "train.z_loss", real, 0.0, "z-loss", "z-loss",
                        "Weight in the training loss of the mean squared largest logit over all positions; keeps logits small. Validation "
                        "leaves it out. 0: the model's own z_loss_weight, which a Baichuan 2 model may have.",
                        "训练损失中各位置最大 logit 平方均值的权重，使 logit 不致过大；验证不计入。0：用模型自身的 "
                        "z_loss_weight（Baichuan 2 模型可能带有）。")
                      .range(0, 1000)
                      .advanced());
    out.push_back(Entry("train", "train.recompute", flag, false, "Recompute activations", "重计算激活值",
                        "Compute the inside of each layer again in the backward pass instead of keeping it: much less memory, about a third more time. "
                        "The numbers are the same.",
                        "反向传播时重新计算每层内部的激活值而不保存：内存大减，时间约多三分之一，数值不变。")
                      .advanced());
    out.push_back(Entry("train", "train.drop_last", flag, false, "Drop the last batch", "丢弃末批",
                        "Leave out the last, smaller step of an epoch instead of running it.", "丢弃每轮末尾不满的一步，而不是照常运行。")
                      .advanced());
}

void addLora(std::vector<Entry>& out) {
    constexpr const char* whenLora = "lora.enabled=true";
    out.push_back(Entry("lora", "lora.enabled", flag, true, "LoRA", "LoRA",
                        "Train small matrices beside the frozen weights (LoRA). Off: every weight of the base learns.",
                        "只训练冻结权重旁的低秩矩阵（LoRA）。关闭：基座的所有权重都参与训练。")
                      .when("kind=finetune"));
    out.push_back(Entry("lora", "lora.targets", textList, Texts{"all-linear"}, "Targets", "目标单元",
                        "Cells that get an adapter: ends of their names such as q_proj, path patterns such as layers.{3..5}.**.q_proj, or "
                        "all-linear for every Dense cell.",
                        "加适配器的单元：名称结尾（如 q_proj）、路径模式（如 layers.{3..5}.**.q_proj），或 all-linear 表示所有 Dense 单元。")
                      .when(whenLora));
    out.push_back(Entry("lora", "lora.target_regex", text, word(""), "Targets by regular expression", "目标正则表达式",
                        "In place of the list: a regular expression that a checkpoint's whole module name must match, as PEFT reads it: "
                        "\".*\\.(q_proj|v_proj)\".",
                        "代替列表：须完整匹配检查点模块名的正则表达式，含义与 PEFT 相同：“.*\\.(q_proj|v_proj)”。")
                      .when(whenLora)
                      .advanced());
    out.push_back(Entry("lora", "lora.rank", integer, whole(8), "Rank", "秩", "Rank r of an adapter's two matrices.", "适配器两个矩阵的秩 r。")
                      .range(1, 65536)
                      .when(whenLora));
    out.push_back(Entry("lora", "lora.alpha", real, 16.0, "Alpha", "Alpha",
                        "An adapter's output is scaled by alpha / r.", "适配器输出乘以 alpha / r。")
                      .range(1e-9, 1e9)
                      .when(whenLora));
    out.push_back(Entry("lora", "lora.dropout", real, 0.0, "Dropout", "Dropout",
                        "Part of an adapter's input that is set to 0 in training.", "训练时适配器输入中被置零的比例。")
                      .range(0, 0.999999)
                      .when(whenLora));
    out.push_back(Entry("lora", "lora.rslora", flag, false, "rsLoRA", "rsLoRA",
                        "Scale by alpha / √r, which keeps large ranks learning.", "按 alpha / √r 缩放，使较大的秩仍能学习。")
                      .when(whenLora)
                      .advanced());
    out.push_back(Entry("lora", "lora.dora", flag, false, "DoRA", "DoRA",
                        "Also learn the length of each row of the weight (DoRA). Slower.", "另外学习权重每一行的长度（DoRA），速度较慢。")
                      .when(whenLora)
                      .advanced());
    out.push_back(Entry("lora", "lora.bias", choice, word("none"), "Biases", "偏置",
                        "none: biases stay as they are. lora_only: those of cells with an adapter learn. all: every bias learns.",
                        "none：偏置不变。lora_only：有适配器的单元的偏置参与训练。all：所有偏置参与训练。")
                      .choices({"none", "lora_only", "all"})
                      .when(whenLora)
                      .advanced());
    out.push_back(Entry("lora", "lora.rank_pattern", textList, Texts{}, "Ranks by name", "按名称设定秩",
                        "Other ranks for some targets, each the end of a module's name and a number: \"v_proj=2\". The first that matches decides.",
                        "为部分目标另设秩，每项写成 模块名结尾=数字，如 “v_proj=2”，以先匹配的为准。")
                      .when(whenLora)
                      .advanced());
    out.push_back(Entry("lora", "lora.alpha_pattern", textList, Texts{}, "Alphas by name", "按名称设定 Alpha",
                        "Other alphas for some targets, as with the ranks: \"v_proj=6\".", "为部分目标另设 alpha，写法同上，如 “v_proj=6”。")
                      .when(whenLora)
                      .advanced());
    out.push_back(Entry("lora", "lora.layers_to_transform", textList, Texts{}, "Layers", "层",
                        "Only these layers get adapters: numbers and ranges such as 0..3. Empty: all.", "只在这些层加适配器：层号或 0..3 这样的范围。留空：全部。")
                      .when(whenLora)
                      .advanced());
    out.push_back(Entry("lora", "lora.modules_to_save", textList, Texts{}, "Learn whole", "整体训练的单元",
                        "Cells that learn with all their weights and are saved with the adapter, by the ends of their names: lm_head, norm.",
                        "整体参与训练并随适配器保存的单元，按名称结尾给出：lm_head、norm。")
                      .when(whenLora)
                      .advanced());
    out.push_back(Entry("lora", "lora.adapter", path, word(""), "Start from adapter", "初始适配器",
                        "An adapter's folder, or a run that trained one, to go on from; its targets and ranks must be those chosen here. Empty: new ones.",
                        "从该适配器（文件夹或训练过它的运行）继续；其目标与秩须与此处一致。留空则新建。")
                      .when(whenLora)
                      .advanced());
    out.push_back(Entry("lora", "lora.base_type", choice, word("float32"), "Base in memory", "基座存储类型",
                        "Type in which the frozen weights are kept in memory. With amp_level O2 in the same type nothing is copied to compute. "
                        "Adapters are float32 in any case.",
                        "冻结权重在内存中的类型。amp_level 为 O2 且半精度类型相同时，计算无需复制。适配器始终是 float32。")
                      .choices({"float32", "bfloat16", "float16"})
                      .when(whenLora));
}

void addOptimizer(std::vector<Entry>& out) {
    constexpr const char* whenMoments = "optimizer.type=AdamW|AdamWeightDecay|Adam|Lion";
    out.push_back(Entry("optimizer", "optimizer.type", choice, word("AdamW"), "Optimizer", "优化器",
                        "AdamW corrects the bias of its moments; AdamWeightDecay is MindSpore's, without that correction; Adam adds the decay to the "
                        "gradient. SGD and Momentum keep one moment. Lion steps by signs and wants 3 to 10 times smaller rates than AdamW. "
                        "Adafactor keeps almost no state. RMSProp divides by a running root of squares.",
                        "AdamW 对矩估计做偏差修正；AdamWeightDecay 与 MindSpore 相同，不做修正；Adam 把衰减加到梯度上。SGD 和 Momentum 只保存一个动量。Lion "
                        "按符号更新，学习率应比 AdamW 小 3 到 10 倍。Adafactor 几乎不占状态内存。RMSProp 除以梯度平方滑动平均的根。")
                      .choices({"AdamW", "AdamWeightDecay", "Adam", "SGD", "Momentum", "Lion", "Adafactor", "RMSProp"}));
    out.push_back(Entry("optimizer", "optimizer.lr", real, 3e-4, "Learning rate", "学习率",
                        "Peak of the learning rate, reached after warm-up.", "学习率的峰值，在预热之后达到。")
                      .range(0, 1e9));
    out.push_back(Entry("optimizer", "optimizer.beta1", real, 0.9, "Beta 1", "Beta 1",
                        "Decay of the gradient's running mean; of Lion: its part in the step.", "梯度滑动平均的衰减系数；对 Lion：动量在更新中的比例。")
                      .range(0, 0.9999999)
                      .advanced()
                      .when(whenMoments));
    out.push_back(Entry("optimizer", "optimizer.beta2", real, 0.95, "Beta 2", "Beta 2",
                        "Decay of the squared gradient's running mean; of Lion: of the gradient's (0.99 in its paper).",
                        "梯度平方滑动平均的衰减系数；对 Lion：梯度滑动平均的衰减系数（论文中为 0.99）。")
                      .range(0, 0.9999999)
                      .advanced()
                      .when(whenMoments));
    out.push_back(Entry("optimizer", "optimizer.eps", real, 1e-8, "Epsilon", "Epsilon", "Added to the denominator of the update.",
                        "加在更新分母上的小数。")
                      .range(1e-30, 1)
                      .advanced()
                      .when("optimizer.type=AdamW|AdamWeightDecay|Adam|RMSProp"));
    out.push_back(Entry("optimizer", "optimizer.momentum", real, 0.9, "Momentum", "动量",
                        "Part of the last step's movement that goes on. 0: none, and no memory for it.", "上一步移动量中保留的比例。0：不用动量，也不占内存。")
                      .range(0, 0.9999999)
                      .when("optimizer.type=SGD|Momentum|RMSProp"));
    out.push_back(Entry("optimizer", "optimizer.dampening", real, 0.0, "Dampening", "阻尼",
                        "Part of the gradient that does not enter the momentum.", "梯度中不计入动量的比例。")
                      .range(0, 1)
                      .advanced()
                      .when("optimizer.type=SGD"));
    out.push_back(Entry("optimizer", "optimizer.nesterov", flag, false, "Nesterov", "Nesterov",
                        "Look ahead along the momentum. Needs momentum and no dampening.", "沿动量方向预先看一步；需要动量，且阻尼为 0。")
                      .advanced()
                      .when("optimizer.type=SGD|Momentum"));
    out.push_back(Entry("optimizer", "optimizer.alpha", real, 0.99, "Alpha", "Alpha",
                        "Decay of the running mean of squared gradients (MindSpore calls it decay).", "梯度平方滑动平均的衰减系数（MindSpore 中称 decay）。")
                      .range(0, 0.9999999)
                      .advanced()
                      .when("optimizer.type=RMSProp"));
    out.push_back(Entry("optimizer", "optimizer.centered", flag, false, "Centred", "中心化",
                        "Divide by the spread of the gradient: squares less the square of its own mean.", "除以梯度的标准差：平方均值减去均值的平方。")
                      .advanced()
                      .when("optimizer.type=RMSProp"));
    out.push_back(Entry("optimizer", "optimizer.beta2_decay", real, -0.8, "Beta 2 decay", "Beta 2 衰减",
                        "At step t the newest squared gradient counts t to this power.", "第 t 步时最新梯度平方的权重为 t 的该次幂。")
                      .range(-10, 0)
                      .advanced()
                      .when("optimizer.type=Adafactor"));
    out.push_back(Entry("optimizer", "optimizer.min_scale", real, 1e-3, "Least scale", "最小尺度",
                        "The rate is relative to the root mean square of a weight, at least this.", "学习率相对于权重的均方根，该均方根至少取此值。")
                      .range(1e-30, 1e6)
                      .advanced()
                      .when("optimizer.type=Adafactor"));
    out.push_back(Entry("optimizer", "optimizer.update_clip", real, 1.0, "Update clipping", "更新裁剪",
                        "An update whose root mean square is above this is scaled down to it.", "更新量的均方根超过该值时按比例缩小。")
                      .range(1, 1e9)
                      .advanced()
                      .when("optimizer.type=Adafactor"));
    out.push_back(Entry("optimizer", "optimizer.weight_decay", real, 0.1, "Weight decay", "权重衰减",
                        "AdamW, AdamWeightDecay, Lion, Adafactor: each step takes lr × this part of the weight away. Adam, SGD, Momentum, RMSProp: this part of "
                        "the weight is added to its gradient.",
                        "AdamW、AdamWeightDecay、Lion、Adafactor：每步减去权重的 学习率 × 该值。Adam、SGD、Momentum、RMSProp：把权重乘该值加到梯度上。")
                      .range(0, 100));
    out.push_back(
        Entry("optimizer", "optimizer.no_decay", textList, Texts{"**.*norm*.**", "**.bias"}, "Without decay", "不衰减的参数",
              "Patterns of parameter paths that weight decay leaves alone: * is one name or a part of it, ** any number of names.",
              "不做权重衰减的参数路径模式：* 匹配一个名字或其中一部分，** 匹配任意多个名字。")
            .advanced());
    out.push_back(Entry("optimizer", "optimizer.decay_vectors", flag, false, "Decay vectors", "衰减一维参数",
                        "Also decay parameters of one dimension (norms, biases).", "对一维参数（归一化、偏置）也做权重衰减。")
                      .advanced());
    out.push_back(Entry("optimizer", "optimizer.clip_norm", real, 1.0, "Gradient clipping", "梯度裁剪",
                        "Gradients whose global norm exceeds this are scaled down to it. 0: off.",
                        "梯度的全局范数超过该值时按比例缩小。0：关闭。")
                      .range(0, 1e9));
}

void addSchedule(std::vector<Entry>& out) {
    constexpr const char* whenRated = "schedule.type=exponential|natural_exp|inverse|step";
    out.push_back(Entry("schedule", "schedule.type", choice, word("cosine"), "Schedule", "学习率曲线",
                        "How the rate falls after warm-up. exponential: × rate ^ (s / d). natural_exp: × e ^ (−rate · s). inverse: / (1 + rate · s / d). step: × rate "
                        "every d steps. piecewise: as listed. s counts steps, d is the decay length.",
                        "预热之后学习率如何下降。exponential：× rate ^ (s / d)。natural_exp：× e ^ (−rate · s)。inverse：/ (1 + rate · s / d)。step：每 d 步 × "
                        "rate。piecewise：按列表。s 为步数，d 为衰减长度。")
                      .choices({"constant", "linear", "cosine", "polynomial", "exponential", "natural_exp", "inverse", "step", "piecewise"}));
    out.push_back(
        Entry(
            "schedule", "schedule.rule", choice, word("celloom"), "Counting rule", "计步规则",
            "Whose way of counting steps: celloom (first step above 0, last step at the minimum), transformers (first step 0), mindformers "
            "(at least one warm-up step), mindspore (decay counted from the first step, beside warm-up).",
            "按谁的方式计步：celloom（首步大于 0，末步到最小值）、transformers（首步为 "
            "0）、mindformers（至少预热一步）、mindspore（衰减从首步算起，与预热并行）。")
            .choices({"celloom", "transformers", "mindformers", "mindspore"})
            .advanced());
    out.push_back(Entry("schedule", "schedule.unit", choice, word("step"), "Counted in", "计数单位",
                        "What warm-up, decay length and pieces are counted in. epoch: the rate stands still within an epoch, as with MindSpore's "
                        "nn.cosine_decay_lr and the like.",
                        "预热、衰减长度和分段以何计数。epoch：同一轮内学习率不变，与 MindSpore 的 nn.cosine_decay_lr 等相同。")
                      .choices({"step", "epoch"})
                      .advanced());
    out.push_back(Entry("schedule", "schedule.warmup_steps", integer, whole(0), "Warm-up", "预热步数",
                        "Steps (or epochs) in which the rate rises to its peak. 0: by the warm-up part.",
                        "学习率升到峰值所用的步数（或轮数）。0：由预热比例决定。")
                      .range(0, 1e12)
                      .unit("steps", "步"));
    out.push_back(Entry("schedule", "schedule.warmup_ratio", real, 0.0, "Warm-up part", "预热比例",
                        "Warm-up as a part of all steps, rounded down. Used when the warm-up steps are 0.",
                        "预热占总步数的比例，向下取整。预热步数为 0 时使用。")
                      .range(0, 1));
    out.push_back(Entry("schedule", "schedule.min_lr", real, 0.0, "Lowest rate", "最低学习率",
                        "The rate at the end of the fall; the others never fall below it.", "下降结束时的学习率；其他曲线不会低于它。")
                      .range(0, 1e9)
                      .when("schedule.type!=constant|piecewise"));
    out.push_back(Entry("schedule", "schedule.power", real, 2.0, "Power", "幂次", "Of a polynomial fall; 1 is a straight line.", "多项式下降的幂次；1 即直线。")
                      .range(1e-6, 1000)
                      .when("schedule.type=polynomial"));
    out.push_back(Entry("schedule", "schedule.decay_rate", real, 0.9, "Decay rate", "衰减率", "The rate in the formula of the schedule's type.",
                        "曲线公式中的 rate。")
                      .range(1e-12, 1e6)
                      .when(whenRated));
    out.push_back(Entry("schedule", "schedule.decay_steps", integer, whole(0), "Decay length", "衰减长度",
                        "d: steps (or epochs) over which the rate falls, or after which it falls once. 0: what warm-up leaves of the run.",
                        "d：学习率下降所用的步数（或轮数），或每次下降相隔的步数。0：预热之后的整个运行。")
                      .range(0, 1e12)
                      .unit("steps", "步")
                      .when("schedule.type!=constant|piecewise"));
    out.push_back(Entry("schedule", "schedule.staircase", flag, false, "Staircase", "阶梯",
                        "Fall once every d steps instead of a little with each.", "每 d 步下降一次，而不是每步下降一点。")
                      .advanced()
                      .when("schedule.type=exponential|natural_exp|inverse"));
    out.push_back(Entry("schedule", "schedule.extends", flag, false, "Extend at the end", "到期延长",
                        "When the decay length is over, it is lengthened by itself and the rate rises again (MindSpore's update_decay_steps).",
                        "衰减长度用完后再延长一个衰减长度，学习率随之回升（MindSpore 的 update_decay_steps）。")
                      .advanced()
                      .when("schedule.type=polynomial"));
    out.push_back(Entry("schedule", "schedule.pieces", textList, Texts{}, "Pieces", "分段",
                        "Rates by their ends, rising: 1000=3e-4 means 3e-4 before step 1000. The last rate stays to the end.",
                        "按结束位置递增列出的学习率：1000=3e-4 表示第 1000 步之前为 3e-4。最后一个一直保持到结束。")
                      .when("schedule.type=piecewise"));
}

void addPrecision(std::vector<Entry>& out) {
    constexpr const char* whenMixed = "precision.amp_level!=O0";
    out.push_back(Entry("precision", "precision.amp_level", choice, word("O0"), "amp_level", "amp_level",
                        "Which cells compute in the half type. O0: none. O1: matrix products, attention and ReLU, whose outputs go back to float32. "
                        "O2: all but normalisations. O3: all. auto: cell by cell, products in half, Softmax and normalisations in float32, the others "
                        "as their inputs. Weights, gradients and the network's output are float32 at each level.",
                        "哪些单元用半精度计算。O0：无。O1：矩阵乘、注意力和 ReLU，输出转回 float32。O2：除归一化外全部。O3：全部。auto：逐单元，矩阵乘用半精度，"
                        "Softmax 和归一化用 float32，其余随输入。任何级别下权重、梯度和网络输出都是 float32。")
                      .choices({"O0", "O1", "O2", "O3", "auto"}));
    out.push_back(Entry("precision", "precision.half_type", choice, word("bfloat16"), "Half type", "半精度类型",
                        "bfloat16 has float32's range; float16 is finer but overflows, and needs a loss scale.",
                        "bfloat16 的范围与 float32 相同；float16 更精细但会溢出，需要损失缩放。")
                      .choices({"bfloat16", "float16"})
                      .when(whenMixed));
    out.push_back(Entry("precision", "precision.allow", textList, Texts{}, "Also in half", "允许半精度",
                        "Cells that compute in the half type whatever the level says: types such as Softmax, or path patterns such as "
                        "layers.{0..3}.**. A rule's dtype wins over this list.",
                        "无论级别如何都用半精度计算的单元：类型（如 Softmax）或路径模式（如 layers.{0..3}.**）。规则中的 dtype 优先。")
                      .advanced()
                      .when(whenMixed));
    out.push_back(Entry("precision", "precision.deny", textList, Texts{}, "Kept in float32", "保持 float32",
                        "Cells that compute in float32 whatever the level says: types or path patterns. Wins over the list of allowed ones.",
                        "无论级别如何都用 float32 计算的单元：类型或路径模式；优先于允许列表。")
                      .advanced()
                      .when(whenMixed));
    out.push_back(
        Entry("precision", "precision.loss_scale", choice, word("auto"), "Loss scale", "损失缩放",
              "Factor on the loss that keeps small float16 gradients above zero. auto: as MindSpore, dynamic from 2^24 with factor 2 and window 2000 at "
              "O2 with float16, none otherwise. dynamic falls on overflow and grows after a quiet window.",
              "乘在损失上的系数，使较小的 float16 梯度不致归零。auto：与 MindSpore 相同，O2 加 float16 时从 2^24 开始动态缩放（倍率 2，窗口 2000），否则不缩放。"
              "dynamic：溢出时减小，平稳一段后增大。")
            .choices({"auto", "none", "fixed", "dynamic"}));
    out.push_back(Entry("precision", "precision.loss_scale_value", real, 65536.0, "Scale", "缩放值",
                        "The fixed scale, or the first of a dynamic one.", "固定的缩放值，或动态缩放的初始值。")
                      .range(1, 1e30)
                      .when("precision.loss_scale=fixed|dynamic"));
    out.push_back(Entry("precision", "precision.loss_scale_factor", real, 2.0, "Scale factor", "缩放倍率",
                        "A dynamic scale is divided by this on overflow and multiplied by it after a quiet window.",
                        "动态缩放在溢出时除以该值，平稳一段后乘以该值。")
                      .range(1, 1e6)
                      .advanced()
                      .when("precision.loss_scale=dynamic"));
    out.push_back(Entry("precision", "precision.loss_scale_window", integer, whole(1000), "Scale window", "缩放窗口",
                        "Steps without overflow after which a dynamic scale grows.", "连续多少步无溢出后增大动态缩放。")
                      .range(1, 1e9)
                      .unit("steps", "步")
                      .advanced()
                      .when("precision.loss_scale=dynamic"));
    out.push_back(Entry("precision", "precision.drop_overflow_update", flag, true, "Skip overflows", "跳过溢出步",
                        "With a fixed scale: a step whose gradients overflow changes nothing and the run goes on. Off: such a step ends the run.",
                        "固定缩放时：梯度溢出的一步不做更新，继续运行。关闭：遇到溢出即结束运行。")
                      .advanced()
                      .when("precision.loss_scale=fixed"));
}

void addMonitors(std::vector<Entry>& out) {
    const Texts modes{"auto", "min", "max"}, watched{"eval_loss", "eval_perplexity", "loss"};
    const char *monitor = "\"eval_loss\" or another measurement of the validation data; \"loss\": the training's own, at the end of epochs.",
               *monitorZh = "“eval_loss”或验证数据的其他测量值；“loss”：训练自身的损失，在每轮结束时。",
               *mode = "Whether the measurement is to fall (min) or to rise (max). auto: losses, errors and perplexities fall, the rest rises.",
               *modeZh = "测量值应下降（min）还是上升（max）。auto：损失、误差和困惑度应下降，其余应上升。",
               *delta = "What a measurement must improve by to count as better.", *deltaZh = "测量值至少改善多少才算更好。";
    const char* whenStopping = "callbacks.early_stopping_patience!=0";
    out.push_back(Entry("callbacks", "callbacks.early_stopping_patience", integer, whole(0), "EarlyStopping", "EarlyStopping",
                        "The run ends after so many evaluations in a row that improved nothing. 0: never.", "连续这么多次评估没有改善就结束运行。0：不提前结束。")
                      .range(0, 1e9)
                      .unit("evaluations", "次评估"));
    out.push_back(Entry("callbacks", "callbacks.early_stopping_monitor", text, word("eval_loss"), "Watches", "监视", monitor, monitorZh).choices(watched).when(whenStopping));
    out.push_back(Entry("callbacks", "callbacks.early_stopping_mode", choice, word("auto"), "Better is", "更好的方向", mode, modeZh).choices(modes).advanced().when(whenStopping));
    out.push_back(Entry("callbacks", "callbacks.early_stopping_min_delta", real, 0.0, "Smallest improvement", "最小改善", delta, deltaZh)
                      .range(0, 1e9).advanced().when(whenStopping));
    out.push_back(Entry("callbacks", "callbacks.early_stopping_baseline", real, 0.0, "To be passed", "须超越的基准",
                        "Evaluations that are not better than this are waited for too, whatever they improved. 0: none.",
                        "不优于该值的评估也计入等待，无论是否有改善。0：无基准。")
                      .advanced().when(whenStopping));
    out.push_back(Entry("callbacks", "callbacks.early_stopping_restore_best", flag, false, "Best weights back", "恢复最佳权重",
                        "When it ends the run, bring back the weights of the best evaluation. Takes the memory of a second copy of all weights that learn.",
                        "提前结束时恢复最佳评估时的权重。需要另一份可训练权重的内存。")
                      .when(whenStopping));
    const char* whenReducing = "callbacks.reduce_lr_patience!=0";
    out.push_back(Entry("callbacks", "callbacks.reduce_lr_patience", integer, whole(0), "ReduceLROnPlateau", "ReduceLROnPlateau",
                        "The learning rate is lowered after so many evaluations in a row that improved nothing; the schedule counts no longer then. 0: never.",
                        "连续这么多次评估没有改善就降低学习率，此后不再按学习率曲线。0：不降低。")
                      .range(0, 1e9)
                      .unit("evaluations", "次评估"));
    out.push_back(Entry("callbacks", "callbacks.reduce_lr_factor", real, 0.1, "Factor", "系数", "What the rate is multiplied by.", "学习率所乘的系数。")
                      .range(1e-9, 0.999999).when(whenReducing));
    out.push_back(Entry("callbacks", "callbacks.reduce_lr_monitor", text, word("eval_loss"), "Watches", "监视", monitor, monitorZh).choices(watched).when(whenReducing));
    out.push_back(Entry("callbacks", "callbacks.reduce_lr_mode", choice, word("auto"), "Better is", "更好的方向", mode, modeZh).choices(modes).advanced().when(whenReducing));
    out.push_back(Entry("callbacks", "callbacks.reduce_lr_min_delta", real, 1e-4, "Smallest improvement", "最小改善", delta, deltaZh)
                      .range(0, 1e9).advanced().when(whenReducing));
    out.push_back(Entry("callbacks", "callbacks.reduce_lr_cooldown", integer, whole(0), "Rest after it", "降低后的间歇",
                        "Evaluations after a reduction that are not waited for.", "降低后不计入等待的评估次数。")
                      .range(0, 1e9).unit("evaluations", "次评估").advanced().when(whenReducing));
    out.push_back(Entry("callbacks", "callbacks.reduce_lr_min", real, 0.0, "Lowest rate", "最低学习率", "The rate is not lowered below it.", "学习率不低于此值。")
                      .range(0, 1e9).advanced().when(whenReducing));
}

void addCallbacks(std::vector<Entry>& out) {
    out.push_back(Entry("callbacks", "callbacks.loss_monitor_steps", integer, whole(1), "LossMonitor", "LossMonitor",
                        "Steps between two lines of loss in the log. 0: none. Charts always hold every step.",
                        "日志中两行损失之间的步数。0：不输出。图表总是包含每一步。")
                      .range(0, 1e9)
                      .unit("steps", "步"));
    out.push_back(Entry("callbacks", "callbacks.time_monitor", flag, true, "TimeMonitor", "TimeMonitor",
                        "Log the time of each epoch and of its steps.", "记录每轮及其各步的用时。"));
    addMonitors(out);
    out.push_back(Entry("callbacks", "checkpoint.every_steps", integer, whole(500), "Checkpoint every", "保存间隔",
                        "Steps between two checkpoints. 0: only at the end and when the run is stopped.",
                        "两次检查点之间的步数。0：仅在结束和停止时保存。")
                      .range(0, 1e12)
                      .unit("steps", "步"));
    out.push_back(Entry("callbacks", "checkpoint.keep_max", integer, whole(5), "Keep at most", "最多保留",
                        "Checkpoints kept; older ones are deleted.", "保留的检查点数；更早的会被删除。")
                      .range(1, 100000)
                      .unit("checkpoints", "个"));
    out.push_back(Entry("callbacks", "checkpoint.keep_best", flag, true, "Keep the best", "保留最佳",
                        "Also keep the checkpoint with the lowest validation loss.", "另外保留验证损失最低的检查点。"));
    out.push_back(Entry("callbacks", "sample.every_steps", integer, whole(0), "Sample every", "采样间隔",
                        "Steps between two samples of text that the model writes. 0: none.", "两次让模型写样例文字之间的步数。0：不采样。")
                      .range(0, 1e12)
                      .unit("steps", "步"));
    out.push_back(Entry("callbacks", "sample.prompts", textList, Texts{}, "Prompts", "提示词", "Texts that the samples continue.",
                        "由模型续写的文字。")
                      .when("sample.every_steps!=0"));
    out.push_back(Entry("callbacks", "sample.max_new_tokens", integer, whole(64), "Sample length", "采样长度",
                        "Tokens written for each prompt.", "每个提示词续写的词元数。")
                      .range(1, 1048576)
                      .unit("tokens", "词元")
                      .when("sample.every_steps!=0"));
    out.push_back(Entry("callbacks", "sample.temperature", real, 0.8, "Temperature", "温度",
                        "Below 1 the likelier tokens win more often; 0 always takes the likeliest.",
                        "小于 1 时更偏向高概率词元；0 总取最可能的词元。")
                      .range(0, 100)
                      .when("sample.every_steps!=0"));
    out.push_back(Entry("callbacks", "sample.top_k", integer, whole(0), "Top k", "Top k",
                        "Only the k likeliest tokens are drawn from. 0: all.", "只在最可能的 k 个词元中抽取。0：全部。")
                      .range(0, 1e9)
                      .advanced()
                      .when("sample.every_steps!=0"));
    out.push_back(Entry("callbacks", "sample.top_p", real, 0.95, "Top p", "Top p",
                        "Only the likeliest tokens whose probabilities add up to this are drawn from. 1: all.",
                        "只在概率累计达到该值的最可能词元中抽取。1：全部。")
                      .range(1e-6, 1)
                      .advanced()
                      .when("sample.every_steps!=0"));
    out.push_back(Entry("callbacks", "sample.seed", integer, whole(0), "Sample seed", "采样种子",
                        "Samples of the same seed differ by the weights alone.", "种子相同的样例只因权重而不同。")
                      .range(0, kMaxWhole)
                      .advanced()
                      .when("sample.every_steps!=0"));
}

void addEvaluation(std::vector<Entry>& out) {
    out.push_back(Entry("evaluate", "evaluate.every_steps", integer, whole(100), "Evaluate every", "评估间隔",
                        "Steps between two measurements on the validation data. 0: only at the end.", "两次验证之间的步数。0：仅在结束时。")
                      .range(0, 1e12)
                      .unit("steps", "步")
                      .when(kWhenTraining));
    out.push_back(Entry("evaluate", "evaluate.max_batches", integer, whole(0), "Batches of an evaluation", "评估批数",
                        "Batches looked at in each evaluation. 0: all of the validation data.", "每次评估使用的批数。0：全部验证数据。")
                      .range(0, 1e9)
                      .unit("batches", "批")
                      .advanced()
                      .when("kind!=predict"));
    out.push_back(Entry("evaluate", "evaluate.metrics", textList, Texts{}, "Metrics", "指标",
                        "Measured at each evaluation beside the loss, as eval/… on the charts. Of language models over the tokens that count; bleu and "
                        "rouge_l compare the answers to held-out questions. precision, recall and F1 are means over the classes. There are " +
                            joined(metricNames()) + ".",
                        "每次评估时除损失外还测量的指标，图表中为 eval/…。语言模型按计入损失的词元计算；bleu 和 rouge_l 比较对留出问题的回答；precision、recall、F1 为各类平均。可选：" +
                            joined(metricNames()) + "。")
                      .choices(metricNames())
                      .advanced()
                      .when("kind!=predict"));
    out.push_back(Entry("evaluate", "evaluate.generate", integer, whole(0), "Answers to check", "检查的回答数",
                        "Held-out questions that the model answers, greedily, at each evaluation; those that equal the expected answer are counted "
                        "(exact match). 0: none.",
                        "每次评估时让模型以贪心方式回答多少个留出的问题，并统计与标准答案完全一致的比例。0：不检查。")
                      .range(0, 1e9)
                      .unit("questions", "个问题")
                      .when("kind=finetune|evaluate"));
    out.push_back(Entry("evaluate", "evaluate.generate_tokens", integer, whole(64), "Longest answer", "回答长度上限",
                        "Tokens that the model may write for each of these questions.", "每个问题最多生成的词元数。")
                      .range(1, 1048576)
                      .unit("tokens", "词元")
                      .advanced()
                      .when("evaluate.generate!=0"));
}

void addPrediction(std::vector<Entry>& out) {
    constexpr const char* whenPredicting = "kind=predict";
    out.push_back(Entry("predict", "predict.input", path, word(""), "Prompts", "提示文件",
                        "The file of prompts. Text: one a line. JSON Lines with \"prompt\": the text to continue; other fields are kept. Instruction files (see the "
                        "format): the last question of each row is asked, and its answer kept as \"expected\".",
                        "提示所在的文件。文本：每行一条。含 “prompt” 的 JSON Lines：要续写的文字，其他字段原样保留。指令文件（见格式）：提出每行的最后一个问题，"
                        "其答案存为 “expected”。")
                      .when(whenPredicting));
    out.push_back(Entry("predict", "predict.chat", flag, false, "As questions", "作为问题",
                        "Put the prompts through the chat template, as questions. Off: they are continued as they stand. Rows of instruction files are always "
                        "asked.",
                        "把提示放进对话模板，作为问题提出。关闭：按原样续写。指令文件的行总是作为问题。")
                      .when(whenPredicting));
    out.push_back(Entry("predict", "predict.system", text, word(""), "System message", "系统消息",
                        "What stands before each question, where the template has a place for it.", "放在每个问题之前的系统消息（模板支持时）。")
                      .when("predict.chat=true"));
    out.push_back(Entry("predict", "predict.max_new_tokens", integer, whole(100), "Longest text", "长度上限", "Tokens to write for each prompt at most.",
                        "每条提示最多写的词元数。")
                      .range(1, 1000000)
                      .unit("tokens", "词元")
                      .when(whenPredicting));
    out.push_back(Entry("predict", "predict.temperature", real, 0.8, "Temperature", "温度",
                        "Below 1 the likelier tokens win more often; 0 always takes the likeliest.", "小于 1 时更偏向高概率词元；0 总取最可能的词元。")
                      .range(0, 100)
                      .when(whenPredicting));
    out.push_back(Entry("predict", "predict.top_k", integer, whole(0), "Top k", "Top k", "Only the k likeliest tokens are drawn from. 0: all.",
                        "只在最可能的 k 个词元中抽取。0：全部。")
                      .range(0, 1e9)
                      .when(whenPredicting));
    out.push_back(Entry("predict", "predict.top_p", real, 0.95, "Top p", "Top p",
                        "Only the likeliest tokens whose probabilities add up to this are drawn from. 1: all.", "只在概率累计达到该值的最可能词元中抽取。1：全部。")
                      .range(1e-6, 1)
                      .when(whenPredicting));
    out.push_back(Entry("predict", "predict.repetition_penalty", real, 1.0, "Repetition penalty", "重复惩罚",
                        "Above 1: tokens that are there already become less likely.", "大于 1 时，已出现过的词元概率降低。")
                      .range(1e-3, 1000)
                      .advanced()
                      .when(whenPredicting));
    out.push_back(Entry("predict", "predict.seed", integer, whole(0), "Seed of the texts", "写作种子",
                        "The same seed gives the same texts, whatever prompts stand beside them.", "种子相同则文字相同，与旁边的提示无关。")
                      .range(0, kMaxWhole)
                      .advanced()
                      .when(whenPredicting));
    out.push_back(Entry("predict", "predict.stop", textList, Texts{}, "Stop texts", "停止文字", "A text ends before the first of these.",
                        "遇到其中任何一段文字即停止，且不写出。")
                      .when(whenPredicting));
    out.push_back(Entry("predict", "predict.batch_size", integer, whole(8), "Prompts together", "同时计算的提示数",
                        "Prompts computed together. More need more memory.", "一次计算的提示数。越大越占内存。")
                      .range(1, 4096)
                      .unit("prompts", "条")
                      .when(whenPredicting));
    out.push_back(Entry("predict", "predict.context", integer, whole(0), "Context", "上下文",
                        "Tokens that the model looks at. 0: as many as it was trained on.", "模型能看到的词元数。0：与训练时相同。")
                      .range(0, 1e9)
                      .unit("tokens", "词元")
                      .advanced()
                      .when(whenPredicting));
    out.push_back(Entry("predict", "predict.when_full", choice, word("stop"), "When the context is full", "上下文已满时",
                        "stop ends the text; slide goes on without the oldest tokens, slowly.", "stop：文字结束。slide：忘掉最早的词元继续写，较慢。")
                      .choices({"stop", "slide"})
                      .advanced()
                      .when(whenPredicting));
    out.push_back(Entry("predict", "predict.alternatives", integer, whole(-1), "Alternatives told", "记录备选词元",
                        "Tell the log-probability of each token and so many of the likeliest ones in the results. -1: neither.",
                        "在结果中写出每个词元的对数概率及若干最可能的备选。-1：都不写。")
                      .range(-1, 100)
                      .advanced()
                      .when(whenPredicting));
}

void addScripts(std::vector<Entry>& out) {
    out.push_back(Entry("callbacks", "callbacks.scripts", FieldKind::ScriptList, Texts{}, "Your own callbacks and metrics", "自定义回调和指标",
                        "Typed in MindSpore's form: class X(Callback), class X(Metric), or def f(lr, cur_step_num). Each is {name, code, values}, or the path of "
                        "a .py file, which is read in when the run is submitted.",
                        "按 MindSpore 的写法输入：class X(Callback)、class X(Metric) 或 def f(lr, cur_step_num)。每项为 {name, code, values}，或一个 .py 文件的路径（提交运行时读入）。")
                      .when("kind!=predict"));
    out.push_back(Entry("callbacks", "callbacks.on_error", choice, word("stop"), "An error in one of them", "其中出错时",
                        "stop: the run saves a checkpoint and ends. disable: it goes on without the callback or metric.",
                        "stop：保存检查点并结束运行。disable：停用该回调或指标，运行继续。")
                      .choices({"stop", "disable"})
                      .when("kind!=predict"));
}

void addRules(std::vector<Entry>& out) {
    out.push_back(
        Entry("rules", "rules", FieldKind::RuleList, Texts{}, "Rules", "规则",
              "How cells are treated, by patterns of their paths, one rule a line; later rules win: \"layers.{0..3}.**: freeze\".",
              "按路径模式决定单元的处理方式，每行一条，后面的优先：“layers.{0..3}.**: freeze”。"));
}

/// Sections, and keys of the others, that say nothing to an evaluation or a prediction.
bool isOfTrainingAlone(const Field& field) {
    if (field.key == "callbacks.scripts" || field.key == "callbacks.on_error") return false; // metrics are typed there too
    for (const char* section : {"optimizer", "schedule", "callbacks", "rules"})
        if (field.section == section) return true;
    if (field.key == "loss.type" || field.key == "loss.terms") return false; // an evaluation measures them
    if (field.section == "train") return field.key != "train.batch_size" && field.key != "train.sequence_length";
    return field.key.starts_with("precision.loss_scale");
}

std::string onlyWhenTraining(const std::string& condition) {
    if (condition.empty()) return kWhenTraining;
    std::string out;
    for (std::size_t from = 0; from <= condition.size();) {
        const std::size_t end = std::min(condition.find("||", from), condition.size());
        out += (out.empty() ? "" : "||") + std::string(kWhenTraining) + "&" + condition.substr(from, end - from);
        from = end + 2;
    }
    return out;
}

std::vector<Field> makeFields() {
    std::vector<Entry> entries;
    addGeneral(entries);
    addModel(entries);
    addTokenizer(entries);
    addData(entries);
    addTraining(entries);
    addLora(entries);
    addOptimizer(entries);
    addSchedule(entries);
    addPrecision(entries);
    addEvaluation(entries);
    addPrediction(entries);
    addCallbacks(entries);
    addScripts(entries);
    addRules(entries);
    std::vector<Field> out;
    for (Entry& entry : entries) {
        if (isOfTrainingAlone(entry.field)) entry.field.shownWhen = onlyWhenTraining(entry.field.shownWhen);
        out.push_back(std::move(entry.field));
    }
    return out;
}

} // namespace

const std::vector<Section>& sections() {
    static const std::vector<Section> list{
        {"general", "General", "常规"},          {"model", "Model", "模型"},
        {"tokenizer", "Tokenizer", "分词器"},    {"data", "Data", "数据"},
        {"train", "Training", "训练"},           {"lora", "LoRA", "LoRA"},
        {"optimizer", "Optimizer", "优化器"},
        {"schedule", "Learning rate", "学习率"}, {"precision", "Precision", "精度"},
        {"evaluate", "Evaluation", "评估"},      {"predict", "Prediction", "预测"},
        {"callbacks", "Callbacks", "回调"},      {"rules", "Rules", "规则"},
    };
    return list;
}

const std::vector<Field>& fields() {
    static const std::vector<Field> list = makeFields();
    return list;
}

const Field* findField(const std::string& key) {
    static const std::map<std::string, const Field*> index = [] {
        std::map<std::string, const Field*> out;
        for (const Field& field : fields()) CELLOOM_CHECK(out.emplace(field.key, &field).second);
        return out;
    }();
    const auto found = index.find(key);
    return found == index.end() ? nullptr : found->second;
}

} // namespace celloom::recipe
